"""The tail of a slice: its newest keys, in the order of the log, in a hash table on their leading bits."""

import numpy as np
from numpy.typing import NDArray

from neardup.index.lsm.lookup import Found, Lookup
from neardup.kernels.common.plain import plain
from neardup.kernels.index.scanning import EMPTY, TailTable, fill_tail, scan_tail


class Tail:
    """At most `room` keys, no two the same, hashed on the leading bits of `mask`: what every lookup must match."""

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
        """How many more there is room for."""
        return self._room - self._count

    @property
    def nbytes(self) -> int:
        """Bytes of memory, the same whether empty or full."""
        return sum(array.nbytes for array in self._table)

    @property
    def keys(self) -> NDArray[np.uint64]:
        """In the order they came."""
        return self._table.keys[: self._count]

    def probe_and_insert(self, lookup: Lookup, known: NDArray[np.bool_], found: Found) -> int:
        """Add what each lookup finds, among earlier ones too, to `found`, and its key to the tail; return how many.

        Keys that are `known` or here already are not added. There must be room for the others.
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
        """Add what each lookup finds to `found`."""
        if self._count:
            self.probe_and_insert(lookup, np.ones(lookup.keys.size, bool), found)

    def load(self, keys: NDArray[np.uint64]) -> None:
        """Hold these instead: different ones, no more than there is room for."""
        self._table.slots.fill(EMPTY)
        self._count = keys.size
        fill_tail(keys, self._mask, self._plain_table)

    def clear(self) -> None:
        """Hold nothing."""
        self._table.slots.fill(EMPTY)
        self._count = 0
