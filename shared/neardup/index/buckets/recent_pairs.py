"""The newest pairs of a bucket table, in a hash table that fits the cache."""

import numpy as np
from numpy.typing import NDArray

from neardup.index.lsm.lookup import Found
from neardup.kernels.index.bucketing import EMPTY, meet, remember


class RecentPairs:
    """At most `room` pairs (mixed bucket key, fingerprint), no two the same, all of the current epoch."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._keys: NDArray[np.uint64] = np.empty(room, np.uint64)
        self._fingerprints: NDArray[np.uint64] = np.empty(room, np.uint64)
        self._previous: NDArray[np.int32] = np.empty(room, np.int32)
        self._sizes: NDArray[np.int32] = np.empty(room, np.int32)
        self._slots: NDArray[np.int32] = np.full(2 << room.bit_length(), EMPTY, np.int32)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def free(self) -> int:
        """How many more there is room for."""
        return self._room - self._count

    @property
    def nbytes(self) -> int:
        """Bytes of memory, the same whether empty or full."""
        arrays = (self._keys, self._fingerprints, self._previous, self._sizes, self._slots)
        return sum(array.nbytes for array in arrays)

    @property
    def keys(self) -> NDArray[np.uint64]:
        """In the order they came."""
        return self._keys[: self._count]

    @property
    def fingerprints(self) -> NDArray[np.uint64]:
        """Of the same pairs."""
        return self._fingerprints[: self._count]

    def meet(
        self,
        keys: NDArray[np.uint64],
        fingerprints: NDArray[np.uint64],
        *,
        common: int,
        one_epoch: bool,
        marks: NDArray[np.uint8],
        ends: NDArray[np.int64],
        others: NDArray[np.uint64],
        found: Found,
    ) -> int:
        """Add to `found` whom each pair meets, in these, in `others` or before it; remember it; count common buckets.

        There must be room for all of them. For the rest see `kernels.bucketing.meet`.
        """
        ignored = 0

        def kernel(start: int, into: Found) -> tuple[int, int]:
            nonlocal ignored
            reached, count, self._count, more = meet(
                keys, fingerprints, start, common, one_epoch, marks, ends, others, self._slots, self._keys,
                self._fingerprints, self._previous, self._sizes, self._count, into.query, into.key, into.count,
            )  # fmt: skip
            ignored += more
            return reached, count

        found.collect(keys.size, others.size + common, kernel)
        return ignored

    def load(self, keys: NDArray[np.uint64], fingerprints: NDArray[np.uint64]) -> None:
        """Hold these instead."""
        self._slots.fill(EMPTY)
        self._count = keys.size
        remember(
            keys, fingerprints, self._slots, self._keys, self._fingerprints, self._previous, self._sizes
        )  # fmt: skip

    def clear(self) -> None:
        """Hold nothing."""
        self._slots.fill(EMPTY)
        self._count = 0

    def forget(self, fingerprint: np.uint64) -> bool:
        """Remove a fingerprint from all pairs; True when it was in one."""
        kept = self.fingerprints != fingerprint
        if kept.all():
            return False
        self.load(self.keys[kept], self.fingerprints[kept])
        return True
