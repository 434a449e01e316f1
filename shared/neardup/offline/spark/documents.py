"""Documents of a corpus as a DataFrame, numbered in the order of all pages."""

from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from neardup.errors import WrongState
from neardup.offline.corpus.corpus import SCHEMA, Corpus

ID: Final = ("timestamp", "partition", "offset")


def check_signatures(corpus: Corpus, expected: str) -> None:
    """Raise StateError when a file is not a corpus file or has a different signature version."""
    for file in corpus.files():
        found = corpus.signature_version(file)
        if found != expected:
            raise WrongState(
                f"{file.name}: expected signatures {expected}, got {found}: use the settings with which the corpus was "
                "made"
            )


def read_corpus(session: SparkSession, root: str) -> DataFrame:
    """Return the rows of all files except forgotten documents, with their file name and row number.

    Repeated documents are included.
    """
    rows, forgotten = _read_files(session, root), Corpus(root).forgotten().documents
    if not len(forgotten):
        return rows
    ids = session.createDataFrame(forgotten.tolist(), "timestamp long, partition long, offset long").distinct()
    marked = rows.join(ids.withColumn("forgotten", F.lit(True)), list(ID), "left")
    gone = F.col("forgotten").isNotNull()
    # Sketches that copies without a sketch of their own inherit (`forgetting.orphaned_sketches`).
    left = marked.where(gone & (F.length("sketch") > 0)).select("tokens", F.col("sketch").alias("left"))
    bare = (F.length("sketch") == 0) & F.col("left").isNotNull()
    staying = marked.where(~gone).drop("forgotten").join(left.dropDuplicates(["tokens"]), "tokens", "left")
    return staying.withColumn("sketch", F.when(bare, F.col("left")).otherwise(F.col("sketch"))).drop("left")


def _read_files(session: SparkSession, root: str) -> DataFrame:
    address = root if "://" in root else Path(root).absolute().as_uri()
    paths = [f"{address}/{file.name}" for file in Corpus(root).files()]
    schema = from_arrow_schema(SCHEMA)
    if not paths:
        return session.createDataFrame([], schema).select(
            "*", F.lit("").alias("file_name"), F.lit(0).alias("row_index")
        )
    return session.read.schema(schema).parquet(*paths).select("*", "_metadata.file_name", "_metadata.row_index")


def number_rows(rows: DataFrame) -> DataFrame:
    """Return every document once, with a number `row` in the order of the ids.

    Numbers have gaps and change with each computation, so pass the frame to `Scratch.keep` before using it.
    """
    # Use the first of repeated documents by file and row, like the local engine.
    repeats = F.row_number().over(Window.partitionBy(*ID).orderBy("file_name", "row_index"))
    once = rows.repartitionByRange(*ID).withColumn("repeats", repeats).where("repeats = 1").sortWithinPartitions(*ID)
    return once.drop("repeats", "file_name", "row_index").withColumn("row", F.monotonically_increasing_id())
