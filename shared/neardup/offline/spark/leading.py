"""Clusters within components, computed with the kernel of the local engine.

Tasks receive whole components, and one call of the kernel processes all components of a task.
"""

from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from neardup.kernels.offline import leaders as kernels
from neardup.offline.spark.sketches import words_of

_ROWS_A_TASK: Final = 50_000
"""Rows per task, about 40 MB of sketches. Components are never split, so a larger component makes a larger task."""


def find_leaders(members: DataFrame, edges: DataFrame, count: int, threshold: float) -> DataFrame:
    """Return (row, leader) of every member.

    `members` has (row, component, sketch) in `count` rows; `edges` has (a, b, component).
    """
    task = F.pmod(F.xxhash64("component"), F.lit(1 + count // _ROWS_A_TASK)).alias("task")
    left = members.select(task, "row", "sketch").groupBy("task")
    right = edges.select(task, "a", "b").groupBy("task")
    return left.cogroup(right).applyInArrow(_leading(threshold), "row long, leader long")


def _leading(threshold: float) -> Callable[[pyarrow.Table, pyarrow.Table], pyarrow.Table]:
    def leaders(members: pyarrow.Table, edges: pyarrow.Table) -> pyarrow.Table:
        members = members.sort_by("row").combine_chunks()
        rows = members.column("row").to_numpy()
        a, b = (np.searchsorted(rows, edges.column(side).to_numpy()).astype(np.uint32) for side in ("a", "b"))
        neighbour_starts, neighbours = kernels.adjacency(rows.size, a, b)
        words, starts = words_of(members.column("sketch").chunk(0))
        leader = kernels.find_leaders(np.arange(rows.size), neighbour_starts, neighbours, words, starts, threshold)
        return pyarrow.table({"row": rows, "leader": rows[leader]})

    return leaders
