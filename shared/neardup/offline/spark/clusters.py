"""Clusters with copies and representatives, and revised verdicts, as DataFrame operations."""

from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from neardup.offline.clusters.copies import COPY_RELATIONS
from neardup.offline.clusters.overturned import FIRST_REVISION
from neardup.offline.spark.copies import LEVELS
from neardup.types import Relation


def name_of(partition: str | Column, offset: str | Column) -> Column:
    """Return the name of a document, "partition:offset"."""
    return F.concat_ws(":", partition, offset)


def members_of(documents: DataFrame, copies: DataFrame, leaders: DataFrame, rule: str) -> DataFrame:
    """Return every document with its kept row and its cluster. `leaders` has (row, leader) of rows with edges.

    `kept` is the row that was compared instead of the document. `first` and `representative` are structs,
    `cluster_size` includes copies, `relation` is the relation to the first document, and `verdict` is the relation that
    the stream published.
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
    """Return the relation for the strongest level on which a document and the first of its cluster agree, or near."""
    found = F.when(F.col("row") == F.col("first.row"), F.lit("first"))
    for level, relation in zip(LEVELS, COPY_RELATIONS, strict=True):
        found = found.when(F.col(level) == F.col(f"first.{level}"), F.lit(str(relation)))
    # Copies that several levels connect agree at least on the weakest level.
    found = found.when(F.col("kept") == F.col("first.kept"), F.lit(str(Relation.SAME_SHINGLES)))
    return found.otherwise(F.lit(str(Relation.NEAR)))


def near_pairs(members: DataFrame) -> DataFrame:
    """Return (a, b): the kept row of each document that is near the first of its cluster, and the first's kept row."""
    near = members.where(F.col("relation") == str(Relation.NEAR))
    return near.select(F.col("kept").alias("a"), F.col("first.kept").alias("b")).distinct()


def contained_of(verified: DataFrame) -> DataFrame:
    """Return (inner, outer, containment) as rows."""
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
    """Return duplicates that the stream called unique.

    The columns are (row, document, url, fetched_at, relation, duplicate_of, duplicate_of_url, a, b), where `a` and `b`
    are the compared rows. Among several earlier containers of a single document, the one with the highest containment
    is chosen, the first one on a tie.
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
    """Return the rows of overturned.parquet, with revisions that continue those of the previous run.

    A verdict that differs from the previous one increments the revision, also when a document becomes unique again.
    Revisions of documents that no longer exist are dropped.
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
