"""A merge in progress: two neighbouring runs without a key in common become one, a bounded number of keys per batch.

The two runs stay in use until the new one is ready. Compressed runs are read and written through plain buffers of the
size of the merge; what limits a step is keys, so a step takes the same time whatever the runs' size.
"""

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from neardup.index.lsm.array_pool import ArrayPool
from neardup.index.slices.runs import Builder, SortedRun
from neardup.kernels.common.merging import merge_step

MakeBuilder = Callable[[NDArray[np.uint64], int, ArrayPool], Builder]
"""(keys in order, epoch, memory) -> builder of the run."""

HASTE: Final = 1.25
"""Faster than needed by this much, so that a merge ends before the next one of its size begins."""


class Merge:
    """`advance` until it returns the new run."""

    def __init__(self, older: SortedRun, newer: SortedRun, spares: ArrayPool, make_builder: MakeBuilder) -> None:
        self.older, self.newer = older, newer
        self._make_builder, self._spares = make_builder, spares
        self._inputs = [_Reader(older, spares), _Reader(newer, spares)]
        total = older.size + newer.size
        self._out: NDArray[np.uint64] = spares.array(total, np.uint64)
        self._done = (0, 0)
        self._builder: Builder | None = None
        # Each key is read, merged and indexed once, and all of it must be done while newer.size keys come in.
        self._pace = HASTE * 3 * total / max(1, newer.size)

    @property
    def nbytes(self) -> int:
        built = 0 if self._builder is None else self._builder.nbytes
        return int(self._out.nbytes) + sum(reader.nbytes for reader in self._inputs) + built

    def advance(self, inserted: int) -> SortedRun | None:
        """Do the share of work that `inserted` new keys call for; the run when it is ready."""
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
            self._builder = self._make_builder(self._out, self.older.epoch, self._spares)
        return self._builder.run() if self._builder.step(max(1, budget)) else None


class _Reader:
    """The keys of a run; those of a compressed one are decoded step by step."""

    def __init__(self, run: SortedRun, spares: ArrayPool) -> None:
        self._run = run
        plain = getattr(run, "keys", None)
        self._done = 0 if plain is None else run.size
        self.keys: NDArray[np.uint64] = spares.array(run.size, np.uint64) if plain is None else plain

    @property
    def nbytes(self) -> int:
        """Bytes of memory beside the run."""
        return 0 if self.keys is getattr(self._run, "keys", None) else int(self.keys.nbytes)

    def step(self, budget: int) -> int:
        count = min(budget, self._run.size - self._done)
        if count > 0:
            self.keys[self._done : self._done + count] = self._run.read(self._done, self._done + count)
            self._done += count
        return count
