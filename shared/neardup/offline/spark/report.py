"""Counts for the report of a pass on Spark. Only sums and lists of limited length are sent to the driver."""

from collections.abc import Iterable, Sequence
from typing import TypedDict

import pyarrow
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from neardup.offline.report.hosts import MOST_HOSTS
from neardup.offline.report.large_clusters import LOOKED_AT, MOST_WARNINGS, warning_text
from neardup.offline.report.report import Host
from neardup.offline.spark.edges import found_by
from neardup.offline.spark.sketches import sketches_of
from neardup.util.urls import host_or_url


class DocumentCounts(TypedDict):
    """The fields of a report that count documents."""

    documents: int
    identical: int
    same_text: int
    same_shingles: int
    near: int
    clusters: int
    largest: int
    sizes: dict[int, int]
    transitive_clusters: int
    transitive_largest: int
    hosts: list[Host]


class PairCounts(TypedDict):
    """The fields of a report that count pairs."""

    edges: int
    contained: int
    pairs: dict[str, int]


def counts_of_documents(members: DataFrame, components: DataFrame) -> DocumentCounts:
    """Count documents. `components` has (row, component) of rows with edges."""
    relations = {row["relation"]: row["count"] for row in members.groupBy("relation").count().collect()}
    sizes = members.where("relation = 'first'").groupBy("cluster_size").count().orderBy("cluster_size").collect()
    joined = members.select("kept").join(components.withColumnRenamed("row", "kept"), "kept", "left")
    transitive = joined.groupBy(F.coalesce("component", "kept")).count()
    [(clusters, largest)] = transitive.agg(F.count("*"), F.coalesce(F.max("count"), F.lit(0))).collect()
    return {
        "documents": sum(relations.values()),
        "identical": relations.get("identical", 0),
        "same_text": relations.get("same-text", 0),
        "same_shingles": relations.get("same-shingles", 0),
        "near": relations.get("near", 0),
        "clusters": relations.get("first", 0),
        "largest": max((row["cluster_size"] for row in sizes), default=0),
        "sizes": {row["cluster_size"]: row["count"] for row in sizes},
        "transitive_clusters": clusters,
        "transitive_largest": largest,
        "hosts": _hosts(members),
    }


def counts_of_pairs(verified: DataFrame, sources: Sequence[str]) -> PairCounts:
    """Count pairs per source, edges and containments."""
    of_source = [F.count_if(found_by(bit)) for bit in range(len(sources))]
    held = F.count("a_in_b") + F.count("b_in_a")
    [(edges, contained, *counts)] = verified.agg(F.count_if("edge"), held, *of_source).collect()
    return {"edges": edges, "contained": contained, "pairs": dict(zip(sources, counts, strict=True))}


def _hosts(members: DataFrame) -> list[Host]:
    """Return the hosts with most duplicates in descending order."""
    named = members.select("url", (F.col("relation") != "first").cast("long").alias("duplicate"))
    counted = named.mapInArrow(_with_hosts, "host string, duplicate long").groupBy("host")
    found = counted.agg(F.count("*").alias("documents"), F.sum("duplicate").alias("duplicates")).where("duplicates > 0")
    listed = found.orderBy(F.desc("duplicates"), "host").limit(MOST_HOSTS).collect()
    return [Host(row["host"], row["documents"], row["duplicates"]) for row in listed]


def _with_hosts(batches: Iterable[pyarrow.RecordBatch]) -> Iterable[pyarrow.RecordBatch]:
    for batch in batches:
        hosts = pyarrow.array([host_or_url(url) for url in batch.column("url").to_pylist()], pyarrow.string())
        yield pyarrow.RecordBatch.from_arrays([hosts, batch.column("duplicate")], ["host", "duplicate"])


def warnings_of(members: DataFrame, sketches: DataFrame, most: int) -> list[str]:
    """Return a warning per cluster of at least `most` documents, the largest first, at most MOST_WARNINGS.

    `sketches` has (row, sketch) of kept rows.
    """
    place = F.row_number().over(Window.partitionBy("leader").orderBy("row"))
    some = members.where(F.col("cluster_size") >= most).withColumn("place", place).where(f"place <= {LOOKED_AT}")
    some = some.join(sketches, "row", "left").select("leader", "row", "url", "cluster_size", "first.name", "sketch")
    warning = some.groupBy("leader").applyInArrow(_warning, "leader long, size long, warning string")
    listed = warning.orderBy(F.desc("size"), "leader").limit(MOST_WARNINGS).collect()
    return [row["warning"] for row in listed]


def _warning(members: pyarrow.Table) -> pyarrow.Table:
    members = members.sort_by("row")
    size, name = members.column("cluster_size")[0].as_py(), members.column("name")[0].as_py()
    compared = members.column("sketch").drop_null().combine_chunks()
    warning = warning_text(name, size, members.column("url").to_pylist(), sketches_of(compared))
    return pyarrow.table({"leader": members.column("leader")[:1], "size": [size], "warning": [warning]})
