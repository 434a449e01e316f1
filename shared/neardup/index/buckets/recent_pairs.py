"""The memtable of a bucket table: a hash table of the newest pairs that fits the cache."""

import numpy as np
from numpy.typing import NDArray

from neardup.index.lsm.lookup import Found
from neardup.kernels.common.plain import plain
from neardup.kernels.index.bucketing import (
    EMPTY,
    PairBatch,
    RecentTable,
    fill_recent,
    probe_and_insert_recent,
)


class RecentPairs:
    """At most `room` distinct pairs of a mixed bucket key and a fingerprint, all of the current epoch."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._table = RecentTable(
            slots=np.full(2 << room.bit_length(), EMPTY, np.int32),
            keys=np.empty(room, np.uint64),
            fingerprints=np.empty(room, np.uint64),
            previous=np.empty(room, np.int32),
            sizes=np.empty(room, np.int32),
        )
        self._plain_table = plain(self._table)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def free(self) -> int:
        """Number of pairs that can still be inserted."""
        return self._room - self._count

    @property
    def nbytes(self) -> int:
        """Bytes of memory, the same whether empty or full."""
        return sum(array.nbytes for array in self._table)

    @property
    def keys(self) -> NDArray[np.uint64]:
        """The keys in order of insertion."""
        return self._table.keys[: self._count]

    @property
    def fingerprints(self) -> NDArray[np.uint64]:
        """The fingerprints of the same pairs."""
        return self._table.fingerprints[: self._count]

    def probe_and_insert(
        self, batch: PairBatch, in_runs: tuple[NDArray[np.int64], NDArray[np.uint64]], *, one_epoch: bool, found: Found
    ) -> int:
        """Add the fingerprints in each pair's bucket to `found` and insert the pair.

        There must be room for the whole batch. Returns the number of common buckets. See `probe_and_insert_recent`.
        """
        keys, _, _, common = batch
        ignored = 0

        def kernel(start: int, into: Found) -> tuple[int, int]:
            nonlocal ignored
            reached, count, self._count, more = probe_and_insert_recent(
                batch, in_runs, self._plain_table, start, one_epoch, self._count, into.buffers, into.count
            )
            ignored += more
            return reached, count

        found.collect(keys.size, in_runs[1].size + common, kernel)
        return ignored

    def load(self, keys: NDArray[np.uint64], fingerprints: NDArray[np.uint64]) -> None:
        """Replace all pairs by these."""
        self._table.slots.fill(EMPTY)
        self._count = keys.size
        fill_recent(keys, fingerprints, self._plain_table)

    def clear(self) -> None:
        """Drop all pairs."""
        self._table.slots.fill(EMPTY)
        self._count = 0
