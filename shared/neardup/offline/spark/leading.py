"""Clusters within components, by the same kernel as on one machine.

Whole components are dealt out to tasks, as many to each as fit: one call of the kernel does them all.
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
"""Some 40 MB of sketches. A component is never cut, so a larger one makes a larger task."""


def find_leaders(members: DataFrame, edges: DataFrame, count: int, threshold: float) -> DataFrame:
    """(row, leader) of every member.

    `members`: (row, component, sketch), `count` of them; `edges`: (a, b, component).
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
