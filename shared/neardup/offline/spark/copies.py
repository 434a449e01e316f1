"""Copies as DataFrame operations: documents that agree on any of the three levels of identity form a group."""

from functools import reduce
from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from neardup.offline.spark.components import components
from neardup.offline.spark.session import Scratch

LEVELS: Final = ("content", "tokens", "shingles")


def find_copies(documents: DataFrame, scratch: Scratch) -> DataFrame:
    """Return (row, kept) of every document that is represented by another, kept copy.

    The first document of a group with a sketch is kept. If none has a sketch, because the document that has it is not
    in the corpus yet, the first one is kept.
    """
    links = scratch.keep(
        reduce(DataFrame.unionByName, (_links(documents, level) for level in LEVELS)).distinct(), "same"
    )
    groups = components(links, scratch)
    sketched = documents.select("row", (F.length("sketch") == 0).alias("bare"))
    first = F.min(F.struct("bare", "row")).over(Window.partitionBy("component"))
    kept = groups.join(sketched, "row").withColumn("kept", first["row"])
    return scratch.keep(kept.where("kept != row").select("row", "kept"), "copies")


def _links(documents: DataFrame, level: str) -> DataFrame:
    """Return (a, b) from the first document with a checksum to every other one."""
    first = F.min("row").over(Window.partitionBy(level))
    return documents.select("row", first.alias("a")).where("a < row").select("a", F.col("row").alias("b"))
