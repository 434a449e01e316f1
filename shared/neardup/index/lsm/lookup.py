"""Lookups in a table, and the reusable buffers that collect their matches."""

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
"""Maximum size of buffers that are kept between batches, in pairs: 4 MB. Many similar pages in a row may need more."""


@dataclass(slots=True)
class Lookup:
    """A batch of lookups in one table: keys, their distance limits, and the number of leading bits that must match."""

    keys: NDArray[np.uint64]
    limits: NDArray[np.uint64]
    leading: int
    cap: int = DEFAULT_CAP
    queries: Queries = field(init=False)
    """The lookups in the form that kernels accept."""

    def __post_init__(self) -> None:
        self.queries = plain(Queries(self.keys, self.limits, np.uint64(leading_mask(self.leading)), self.cap))


@dataclass(frozen=True, slots=True)
class Matches:
    """Distinct pairs of a query and a key with their distance, sorted by query, distance and key.

    `capped` is the number of queries with more matches than the cap, of which only the nearest are kept.
    """

    query: NDArray[np.int64]
    key: NDArray[np.uint64]
    distance: NDArray[np.uint8]
    capped: int = 0

    def __len__(self) -> int:
        return int(self.query.size)


class Found:
    """Buffers for pairs of a query's number and a key, filled by resumable kernels."""

    def __init__(self, room: int = 1 << 14) -> None:
        self._room = room
        self._make(room)
        self.count = 0
        self.scanned = 0
        """Number of keys that were compared to find the pairs."""

    def clear(self) -> None:
        """Drop the pairs. The buffers are kept unless they have grown large."""
        self.count = self.scanned = 0
        if self.query.size > max(self._room, _KEPT_PAIRS):
            self._make(self._room)

    def collect(self, total: int, least_room: int, kernel: Callable[[int, "Found"], tuple[int, int]]) -> None:
        """Call kernel(start, self) until it has processed all `total` queries.

        The kernel returns the next query and the number of pairs. The buffers are enlarged by at least `least_room`
        pairs between the calls.
        """
        start = 0
        while start < total:
            reached, self.count = kernel(start, self)
            if reached < total:
                self._grow(least_room)
            start = reached

    def collect_capped(self, lookup: Lookup, kernel: Callable[[int], tuple[int, int, int, np.int64]]) -> int:
        """Do as `collect` for the lookups in a run, and return the number of capped queries.

        kernel(start) also returns the numbers of capped queries and of compared keys. It needs room for one match more
        than the cap, and must read `self.buffers` on each call, as they are replaced when they grow.
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
        """Return the pairs as matches of `queries`: without repeats, nearest first, at most `cap` per query."""
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
