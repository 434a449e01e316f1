"""A lookup says which keys are near enough; the matches it found grow in buffers that are used again and again."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from neardup.index.plan.table import leading_mask
from neardup.kernels.common.plain import plain
from neardup.kernels.index.arguments import Buffers, Queries
from neardup.kernels.index.ordering import order_matches

DEFAULT_CAP: Final = 1000
_KEPT_PAIRS: Final = 1 << 18
"""Room for more than this, 4 MB, is what a flood of near pages needed, and not kept for the batches after it."""


@dataclass(slots=True)
class Lookup:
    """Many lookups in one table: keys, how many leading bits must match, how far each rest may be."""

    keys: NDArray[np.uint64]
    limits: NDArray[np.uint64]
    leading: int
    cap: int = DEFAULT_CAP
    queries: Queries = field(init=False)
    """The lookups as kernels take them."""

    def __post_init__(self) -> None:
        self.queries = plain(Queries(self.keys, self.limits, np.uint64(leading_mask(self.leading)), self.cap))


@dataclass(frozen=True, slots=True)
class Matches:
    """Which query found which key at which distance: sorted by query, then distance, then key; no pair twice.

    `capped` queries had more matches than the cap and keep only the nearest.
    """

    query: NDArray[np.int64]
    key: NDArray[np.uint64]
    distance: NDArray[np.uint8]
    capped: int = 0

    def __len__(self) -> int:
        return int(self.query.size)


class Found:
    """Buffers for pairs (query, key). `collect` calls a resumable kernel until it is through."""

    def __init__(self, room: int = 1 << 14) -> None:
        self._room = room
        self._make(room)
        self.count = 0
        self.scanned = 0
        """Keys that were looked at to find these."""

    def clear(self) -> None:
        """Forget what was found, keep the buffers unless they have grown much."""
        self.count = self.scanned = 0
        if self.query.size > max(self._room, _KEPT_PAIRS):
            self._make(self._room)

    def collect(self, total: int, least_room: int, kernel: Callable[[int, "Found"], tuple[int, int]]) -> None:
        """`kernel(start, self)` returns (next, found); grow and repeat until next is `total`."""
        start = 0
        while start < total:
            reached, self.count = kernel(start, self)
            if reached < total:
                self._grow(least_room)
            start = reached

    def collect_capped(self, lookup: Lookup, kernel: Callable[[int], tuple[int, int, int, np.int64]]) -> int:
        """The same for the lookups of a run: `kernel(start)` also says how many were capped, of which all are returned,
        and how many keys it looked at.

        The kernel wants room for one match more than the cap. It must take the buffers when it is called: they change.
        """
        start = capped = 0
        while start < lookup.keys.size:
            reached, self.count, more, scanned = kernel(start)
            capped += more
            self.scanned += int(scanned)
            if reached < lookup.keys.size:
                self._grow(lookup.cap + 1)
            start = reached
        return capped

    def matches(self, queries: NDArray[np.uint64], cap: int) -> Matches:
        """Distances to `queries`, repeats dropped, nearest first, at most `cap` a query."""
        if self.count == 0:
            return _NOTHING
        number = np.empty(self.count, np.int64)
        key = np.empty(self.count, np.uint64)
        distance = np.empty(self.count, np.uint8)
        count, capped = order_matches(self.query, self.key, self.count, queries, cap, number, key, distance)
        return Matches(number[:count], key[:count], distance[:count], capped)

    def _make(self, room: int) -> None:
        self._use(np.empty(room, np.int64), np.empty(room, np.uint64))

    def _use(self, query: NDArray[np.int64], key: NDArray[np.uint64]) -> None:
        self.query, self.key = query, key
        self.buffers = plain(Buffers(query, key))

    def _grow(self, least_room: int) -> None:
        size = max(2 * self.query.size, self.count + 2 * least_room)
        self._use(np.resize(self.query, size), np.resize(self.key, size))


_NOTHING: Final = Matches(np.empty(0, np.int64), np.empty(0, np.uint64), np.empty(0, np.uint8))
