"""Sorted runs of pairs of a mixed bucket key and a fingerprint, and their incremental merge."""

import numpy as np
from numpy.typing import NDArray

from neardup.index.lsm.array_pool import ArrayPool
from neardup.index.lsm.key_directory import KeyDirectory
from neardup.index.lsm.lookup import Found
from neardup.index.slices.merge import HASTE
from neardup.kernels.common.merging import merge_step
from neardup.kernels.common.plain import plain
from neardup.kernels.index.bucketing import OWN, OWN_NOW, PairBatch, SortedPairs, order_within_keys, probe_buckets


class PairRun:
    """Distinct pairs in order of key and fingerprint, with a directory on the leading bits of the keys."""

    def __init__(
        self, keys: NDArray[np.uint64], fingerprints: NDArray[np.uint64], epoch: int, pool: ArrayPool | None = None
    ) -> None:
        """Call `extend` over all keys before the first probe."""
        self.keys, self.fingerprints, self.epoch = keys, fingerprints, epoch
        self._directory = KeyDirectory.empty(keys.size, 0, pool=pool)
        self._pairs = plain(SortedPairs(keys, fingerprints, self._directory.words, self._directory.bits))

    @classmethod
    def of(cls, keys: NDArray[np.uint64], fingerprints: NDArray[np.uint64], epoch: int) -> "PairRun":
        """Return the run of pairs that are in order."""
        run = cls(keys, fingerprints, epoch)
        run.extend(0, keys.size)
        return run

    @classmethod
    def sorted(cls, keys: NDArray[np.uint64], fingerprints: NDArray[np.uint64], epoch: int) -> "PairRun":
        """Return the run of pairs in any order."""
        order = np.argsort(keys)
        keys, fingerprints = keys[order], fingerprints[order]
        order_within_keys(keys, fingerprints)
        return cls.of(keys, fingerprints, epoch)

    @property
    def size(self) -> int:
        return int(self.keys.size)

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        return int(self.keys.nbytes + self.fingerprints.nbytes + self._directory.nbytes)

    def extend(self, start: int, stop: int) -> None:
        """Add keys[start:stop] to the directory. `start` is the `stop` of the call before."""
        self._directory.extend(self.keys, start, stop)

    def probe(self, batch: PairBatch, *, epoch: int, found: Found) -> None:
        """Add the fingerprints under each pair's key to `found`, and set the marks of the batch.

        `epoch` is the current epoch.
        """
        keys, _, _, common = batch
        own_mark = OWN_NOW if self.epoch == epoch else OWN

        def kernel(start: int, into: Found) -> tuple[int, int]:
            return probe_buckets(self._pairs, batch, start, own_mark, into.buffers, into.count)

        found.collect(keys.size, common, kernel)


class PairMerge:
    """A merge in progress of two runs of one epoch. Each step merges pairs and adds them to the directory."""

    def __init__(self, older: PairRun, newer: PairRun, pool: ArrayPool) -> None:
        self.older, self.newer = older, newer
        total = older.size + newer.size
        keys, fingerprints = (pool.array(total, np.uint64) for _ in range(2))
        self._run = PairRun(keys, fingerprints, older.epoch, pool)
        self._done = (0, 0)
        self._pace = HASTE * total / max(1, newer.size)

    @property
    def nbytes(self) -> int:
        return self._run.nbytes

    def advance(self, inserted: int) -> PairRun | None:
        """Do the work that is due for `inserted` new pairs. Return the run once it is complete."""
        older, newer, run = self.older, self.newer, self._run
        before = sum(self._done)
        self._done = merge_step(
            older.keys, older.fingerprints, newer.keys, newer.fingerprints, self._done,
            run.keys, run.fingerprints, int(self._pace * inserted) + 1,
        )  # fmt: skip
        run.extend(before, sum(self._done))
        return run if sum(self._done) == run.size else None
