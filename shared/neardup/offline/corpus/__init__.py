"""The corpus: settled documents in Parquet files, and the columns that a pass works on."""
