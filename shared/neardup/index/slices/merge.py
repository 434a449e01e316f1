"""Incremental merge of two neighbouring runs without a common key.

The two runs stay in use until the new run is complete. Compressed runs are read and written through plain buffers of
the size of the merge. A step is limited by a number of keys, so its time does not depend on the size of the runs.
"""

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from neardup.index.lsm.array_pool import ArrayPool
from neardup.index.slices.runs import Builder, SortedRun
from neardup.kernels.common.merging import merge_step

MakeBuilder = Callable[[NDArray[np.uint64], int, ArrayPool], Builder]
"""Function from keys in order, their epoch and a memory pool to the builder of the run."""

HASTE: Final = 1.25
"""Speed of a merge relative to the slowest that finishes before the next merge of its size starts."""


class Merge:
    """A merge in progress. Call `advance` until it returns the new run."""

    def __init__(self, older: SortedRun, newer: SortedRun, pool: ArrayPool, make_builder: MakeBuilder) -> None:
        self.older, self.newer = older, newer
        self._make_builder, self._pool = make_builder, pool
        self._inputs = [_Reader(older, pool), _Reader(newer, pool)]
        total = older.size + newer.size
        self._out: NDArray[np.uint64] = pool.array(total, np.uint64)
        self._done = (0, 0)
        self._builder: Builder | None = None
        # Each key is read, merged and indexed once, all while newer.size keys are inserted.
        self._pace = HASTE * 3 * total / max(1, newer.size)

    @property
    def nbytes(self) -> int:
        built = 0 if self._builder is None else self._builder.nbytes
        return int(self._out.nbytes) + sum(reader.nbytes for reader in self._inputs) + built

    def advance(self, inserted: int) -> SortedRun | None:
        """Do the work that is due for `inserted` new keys. Return the run once it is complete."""
        budget = int(self._pace * inserted) + 1
        for reader in self._inputs:
            budget -= reader.step(budget)
            if budget <= 0:
                return None
        if self._builder is None:
            before = sum(self._done)
            self._done = merge_step(
                self._inputs[0].keys, None, self._inputs[1].keys, None, self._done, self._out, None, budget
            )
            budget -= sum(self._done) - before
            if sum(self._done) < self._out.size:
                return None
            self._builder = self._make_builder(self._out, self.older.epoch, self._pool)
        return self._builder.run() if self._builder.step(max(1, budget)) else None


class _Reader:
    """Reads the keys of a run; a compressed run is decoded step by step."""

    def __init__(self, run: SortedRun, pool: ArrayPool) -> None:
        self._run = run
        plain = getattr(run, "keys", None)
        self._done = 0 if plain is None else run.size
        self.keys: NDArray[np.uint64] = pool.array(run.size, np.uint64) if plain is None else plain

    @property
    def nbytes(self) -> int:
        """Bytes of memory besides the run."""
        return 0 if self.keys is getattr(self._run, "keys", None) else int(self.keys.nbytes)

    def step(self, budget: int) -> int:
        count = min(budget, self._run.size - self._done)
        if count > 0:
            self.keys[self._done : self._done + count] = self._run.read(self._done, self._done + count)
            self._done += count
        return count
