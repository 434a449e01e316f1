"""The tail of a slice: its memtable, a hash table of the newest keys on their leading bits."""

import numpy as np
from numpy.typing import NDArray

from neardup.index.lsm.lookup import Found, Lookup
from neardup.kernels.common.plain import plain
from neardup.kernels.index.scanning import EMPTY, TailTable, fill_tail, scan_tail


class Tail:
    """At most `room` distinct keys, hashed on the leading bits in `mask`, in which every match agrees."""

    def __init__(self, room: int, mask: np.uint64) -> None:
        self._room, self._mask = room, mask
        self._table = TailTable(
            slots=np.full(2 << room.bit_length(), EMPTY, np.int32),
            keys=np.empty(room, np.uint64),
            previous=np.empty(room, np.int32),
        )
        self._plain_table = plain(self._table)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def free(self) -> int:
        """Number of keys that can still be inserted."""
        return self._room - self._count

    @property
    def nbytes(self) -> int:
        """Bytes of memory, the same whether empty or full."""
        return sum(array.nbytes for array in self._table)

    @property
    def keys(self) -> NDArray[np.uint64]:
        """The keys in order of insertion."""
        return self._table.keys[: self._count]

    def probe_and_insert(self, lookup: Lookup, known: NDArray[np.bool_], found: Found) -> int:
        """Add the matches of each lookup to `found`, insert its key, and return the number of keys inserted.

        A lookup also matches the keys of earlier lookups. Keys that are `known` or in the tail already are not
        inserted. There must be room for the others.
        """
        before = self._count

        def kernel(start: int, into: Found) -> tuple[int, int]:
            reached, count, self._count, scanned = scan_tail(
                lookup.queries, start, self._mask, known, self._plain_table, self._count, into.buffers, into.count
            )
            into.scanned += scanned
            return reached, count

        found.collect(lookup.keys.size, self._room, kernel)
        return self._count - before

    def probe(self, lookup: Lookup, found: Found) -> None:
        """Add the matches of each lookup to `found`."""
        if self._count:
            self.probe_and_insert(lookup, np.ones(lookup.keys.size, bool), found)

    def load(self, keys: NDArray[np.uint64]) -> None:
        """Replace the contents by distinct keys, at most as many as there is room for."""
        self._table.slots.fill(EMPTY)
        self._count = keys.size
        fill_tail(keys, self._mask, self._plain_table)

    def clear(self) -> None:
        """Remove all keys."""
        self._table.slots.fill(EMPTY)
        self._count = 0
