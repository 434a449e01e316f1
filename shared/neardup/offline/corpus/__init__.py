"""The corpus: judged documents in Parquet files, and the column store that a pass works on."""
