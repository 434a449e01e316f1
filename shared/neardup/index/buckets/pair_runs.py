"""Sorted runs of pairs (mixed bucket key, fingerprint), and their merging."""

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
    """Pairs in order of key, then fingerprint, no two the same, with a directory on the keys' leading bits."""

    def __init__(
        self, keys: NDArray[np.uint64], fingerprints: NDArray[np.uint64], epoch: int, spares: ArrayPool | None = None
    ) -> None:
        """`extend` over all keys before the first probe."""
        self.keys, self.fingerprints, self.epoch = keys, fingerprints, epoch
        self._directory = KeyDirectory.empty(keys.size, 0, spares=spares)
        self._pairs = plain(SortedPairs(keys, fingerprints, self._directory.words, self._directory.bits))

    @classmethod
    def of(cls, keys: NDArray[np.uint64], fingerprints: NDArray[np.uint64], epoch: int) -> "PairRun":
        """Build at once, of pairs in order."""
        run = cls(keys, fingerprints, epoch)
        run.extend(0, keys.size)
        return run

    @classmethod
    def sorted(cls, keys: NDArray[np.uint64], fingerprints: NDArray[np.uint64], epoch: int) -> "PairRun":
        """Build at once, of pairs in any order."""
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
        """Enter keys[start:stop] into the directory, on from the last stop."""
        self._directory.extend(self.keys, start, stop)

    def probe(self, batch: PairBatch, *, epoch: int, found: Found) -> None:
        """Add the fingerprints under each pair's key to `found`, and set the marks of the batch.

        `epoch` is the current one.
        """
        keys, _, _, common = batch
        own_mark = OWN_NOW if self.epoch == epoch else OWN

        def kernel(start: int, into: Found) -> tuple[int, int]:
            return probe_buckets(self._pairs, batch, start, own_mark, into.buffers, into.count)

        found.collect(keys.size, common, kernel)


class PairMerge:
    """Two runs of an epoch become one: merged and entered into the directory in one go, a bounded number a batch."""

    def __init__(self, older: PairRun, newer: PairRun, spares: ArrayPool) -> None:
        self.older, self.newer = older, newer
        total = older.size + newer.size
        keys, fingerprints = (spares.array(total, np.uint64) for _ in range(2))
        self._run = PairRun(keys, fingerprints, older.epoch, spares)
        self._done = (0, 0)
        self._pace = HASTE * total / max(1, newer.size)

    @property
    def nbytes(self) -> int:
        return self._run.nbytes

    def advance(self, inserted: int) -> PairRun | None:
        """Do the share of work that `inserted` new pairs call for; the run when it is ready."""
        older, newer, run = self.older, self.newer, self._run
        before = sum(self._done)
        self._done = merge_step(
            older.keys, older.fingerprints, newer.keys, newer.fingerprints, self._done,
            run.keys, run.fingerprints, int(self._pace * inserted) + 1,
        )  # fmt: skip
        run.extend(before, sum(self._done))
        return run if sum(self._done) == run.size else None
