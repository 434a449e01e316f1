"""From leaders to what is published: clusters with their copies, representatives, and what the stream is told."""

from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from neardup.offline.clusters.copies import COPY_RELATIONS
from neardup.offline.clusters.overturned import FIRST_REVISION
from neardup.offline.spark.copies import LEVELS
from neardup.types import Relation


def name_of(partition: str | Column, offset: str | Column) -> Column:
    """As documents are named in results."""
    return F.concat_ws(":", partition, offset)


def members_of(documents: DataFrame, copies: DataFrame, leaders: DataFrame, rule: str) -> DataFrame:
    """Every document with `kept`, the row that was compared in its place, and what its cluster is.

    `first` and `representative` are structs, `cluster_size` counts copies, too, and `relation` is the one to the first
    document (`verdict`: what the stream said). `leaders`: (row, leader) of rows with edges.
    """
    chosen = {
        "first": F.col("row"),
        "longest": -F.col("size"),
        "shortest-url": F.length("url"),
        "https": ~F.lower("url").startswith("https:"),
    }[rule]
    name = name_of("partition", "offset")
    first = F.struct("row", name.alias("name"), "url", "kept", *LEVELS)
    representative = F.struct(chosen.alias("key"), "row", name.alias("name"), "url")
    cluster = Window.partitionBy("leader")
    return (
        documents.withColumnRenamed("relation", "verdict")
        .join(copies, "row", "left")
        .withColumn("kept", F.coalesce("kept", "row"))
        .join(leaders.withColumnRenamed("row", "kept"), "kept", "left")
        .withColumn("leader", F.coalesce("leader", "kept"))
        .withColumn("first", F.min(first).over(cluster))
        .withColumn("representative", F.min(representative).over(cluster))
        .withColumn("cluster_size", F.count("*").over(cluster))
        .withColumn("relation", _relation())
    )


def _relation() -> Column:
    """The strongest level on which a document is its cluster's first, or near."""
    found = F.when(F.col("row") == F.col("first.row"), F.lit("first"))
    for level, relation in zip(LEVELS, COPY_RELATIONS, strict=True):
        found = found.when(F.col(level) == F.col(f"first.{level}"), F.lit(str(relation)))
    # Brought together by several levels, one after the other: the weakest is true of all.
    found = found.when(F.col("kept") == F.col("first.kept"), F.lit(str(Relation.SAME_SHINGLES)))
    return found.otherwise(F.lit(str(Relation.NEAR)))


def near_pairs(members: DataFrame) -> DataFrame:
    """(a, b) of the kept rows of documents that are near their cluster's first, and of that."""
    near = members.where(F.col("relation") == str(Relation.NEAR))
    return near.select(F.col("kept").alias("a"), F.col("first.kept").alias("b")).distinct()


def contained_of(verified: DataFrame) -> DataFrame:
    """(inner, outer, containment) of rows."""
    sides = (("a", "b"), ("b", "a"))
    return reduce(
        DataFrame.unionByName,
        (
            verified.where(f"{a}_in_{b} is not null").select(
                F.col(a).alias("inner"), F.col(b).alias("outer"), F.col(f"{a}_in_{b}").alias("containment")
            )
            for a, b in sides
        ),
    )


def overturned_of(members: DataFrame, contained: DataFrame) -> DataFrame:
    """(row, document, url, fetched_at, relation, duplicate_of, duplicate_of_url, a, b) of duplicates that the stream
    called unique.

    `a` and `b`: the rows that were compared. Of several earlier documents that hold one that is alone, the one that
    holds most counts; among equals the first.
    """
    unique = members.where("verdict is null").withColumn("document", name_of("partition", "offset"))
    said = ("row", "document", "url", "fetched_at")
    in_clusters = unique.where("row != first.row").select(
        *said,
        "relation",
        F.col("first.name").alias("duplicate_of"),
        F.col("first.url").alias("duplicate_of_url"),
        F.col("kept").alias("a"),
        F.col("first.kept").alias("b"),
    )
    best = F.min_by("outer", F.struct(-F.col("containment"), "outer")).alias("b")
    holders = members.select(
        F.col("row").alias("b"),
        name_of("partition", "offset").alias("duplicate_of"),
        F.col("url").alias("duplicate_of_url"),
    )
    alone = (
        unique.where("cluster_size = 1")
        .select(*said, F.col("row").alias("a"))
        .join(contained.where("outer < inner").groupBy(F.col("inner").alias("a")).agg(best), "a")
        .join(holders, "b")
        .withColumn("relation", F.lit(str(Relation.CONTAINED)))
    )
    return in_clusters.unionByName(alone)


def with_revisions(found: DataFrame, before: DataFrame | None, documents: DataFrame) -> DataFrame:
    """What is said now, with revisions that go on from what was said before: the rows of overturned.parquet.

    Something else than before, that it is unique after all included, adds one. What was said of documents that are no
    longer there is forgotten.
    """
    if before is None:
        return found.withColumn("revision", F.lit(FIRST_REVISION).cast("long"))
    named = documents.select("row", name_of("partition", "offset").alias("document"), "url", "fetched_at")
    old = before.select(
        "document", *(F.col(name).alias(f"old_{name}") for name in ("revision", "relation", "duplicate_of"))
    )
    same = F.col("relation").eqNullSafe(F.col("old_relation")) & F.col("duplicate_of").eqNullSafe(
        F.col("old_duplicate_of")
    )
    revision = F.coalesce("old_revision", F.lit(FIRST_REVISION - 1).cast("long")) + F.when(same, 0).otherwise(1)
    said = found.drop("row", "url", "fetched_at").join(old, "document", "full").withColumn("revision", revision)
    return said.join(named, "document").drop("old_revision", "old_relation", "old_duplicate_of")
