"""Connected components as DataFrame operations.

Few edges are joined by union-find in one task. Many edges are processed by alternating large-star and small-star steps
(Kiveris, Lattanzi, Mirrokni, Rastogi, Vassilvitskii 2014, "Connected Components in MapReduce and Beyond"). Both steps
link the neighbours of a row to the least row among them and preserve connectivity. When nothing changes, every
component is a star around its first row. The proven bound is O(log² n) rounds; about five suffice in practice.
"""

from collections.abc import Iterable
from typing import Final

import numpy as np
import pyarrow
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from neardup.kernels.offline import leaders
from neardup.offline.spark.session import Scratch

FEW: Final = 1 << 20
"""Maximum number of edges for one task. Up to this number, one task is faster than starting the tasks of a round."""
_MOST_ROUNDS: Final = 100


def components(edges: DataFrame, scratch: Scratch, few: int = FEW) -> DataFrame:
    """Return (row, component) of every row with an edge. A component is named by its first row.

    `edges` has (a, b) with a < b, each edge once, and must come from `Scratch.keep`.
    """
    if edges.count() <= few:
        return edges.select("a", "b").coalesce(1).mapInArrow(_union_find, "row long, component long")
    links = _stars(edges, scratch).select("row", F.col("to").alias("component"))
    return links.unionByName(links.select(F.col("component").alias("row"), "component").distinct())


def _union_find(batches: Iterable[pyarrow.RecordBatch]) -> Iterable[pyarrow.RecordBatch]:
    pairs = [np.stack([batch.column(name).to_numpy() for name in ("a", "b")]) for batch in batches]
    rows, places = np.unique(np.concatenate([np.empty((2, 0), np.int64), *pairs], axis=1), return_inverse=True)
    a, b = places.reshape(2, -1).astype(np.uint32)
    component = rows[leaders.components(rows.size, a, b)]
    yield pyarrow.RecordBatch.from_arrays([rows, component], ["row", "component"])


def _stars(edges: DataFrame, scratch: Scratch) -> DataFrame:
    """Return (row, to) of every row that is not the first of its component, with that first row."""
    links, before = edges.select(F.col("b").alias("row"), F.col("a").alias("to")), None
    for turn in range(_MOST_ROUNDS):
        # Alternate between two names, because a step cannot overwrite its own input.
        links = scratch.keep(_small_star(_large_star(links)), f"links-{turn % 2}")
        after = _digest(links)
        if after == before:
            return links
        before = after
    raise AssertionError(f"expected connected components after at most {_MOST_ROUNDS} rounds")


def _large_star(links: DataFrame) -> DataFrame:
    """Link every later neighbour of a row to the first among the row and its neighbours."""
    both = links.unionByName(links.select(F.col("to").alias("row"), F.col("row").alias("to")))
    least = F.least(F.col("row"), F.min("to").over(Window.partitionBy("row")))
    both = both.withColumn("least", least).where("to > row")
    return both.select(F.col("to").alias("row"), F.col("least").alias("to"))


def _small_star(links: DataFrame) -> DataFrame:
    """Link a row and its earlier neighbours to the first of them. Links lead to earlier rows."""
    least = links.withColumn("least", F.min("to").over(Window.partitionBy("row")))
    neighbours = least.where("to > least").select(F.col("to").alias("row"), F.col("least").alias("to"))
    return neighbours.unionByName(least.select("row", F.col("least").alias("to"))).distinct()


def _digest(links: DataFrame) -> tuple[int, int]:
    """Return a digest of the links that does not depend on their order."""
    [(count, total)] = links.agg(F.count("*"), F.sum(F.xxhash64("row", "to").cast("decimal(38,0)"))).collect()
    return int(count), int(total or 0)
