"""The tail of a slice: the keys that are not in a run yet, in a hash table on the leading bits that must match.

`slots` maps leading bits to the latest key of the tail with these bits, or to EMPTY. `previous` maps each key to the
previous key with the same leading bits. A query therefore reads only keys that it must compare, newest first.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from neardup.kernels.common.bits import popcount
from neardup.kernels.common.hashing import avalanche
from neardup.kernels.index.arguments import Buffers, Queries

U = np.uint64
EMPTY = -1


class TailTable(NamedTuple):
    """The arrays of the hash table."""

    slots: NDArray[np.int32]
    keys: NDArray[np.uint64]
    previous: NDArray[np.int32]


@njit(nogil=True, cache=True)
def _slot_of(wanted: np.uint64, mask: np.uint64, slots: NDArray[np.int32], tail: NDArray[np.uint64]) -> np.uint64:
    """Return the slot of the last key with these leading bits, or the empty slot for them."""
    wrap = U(slots.size - 1)
    slot = avalanche(wanted) & wrap
    while slots[slot] != EMPTY and tail[slots[slot]] & mask != wanted:
        slot = (slot + U(1)) & wrap
    return slot


@njit(nogil=True, cache=True)
def fill_tail(keys: NDArray[np.uint64], mask: np.uint64, table: TailTable) -> None:
    """Insert distinct keys into an empty tail."""
    slots, tail, previous = table
    for i in range(keys.size):
        slot = _slot_of(keys[i] & mask, mask, slots, tail)
        tail[i] = keys[i]
        previous[i] = slots[slot]
        slots[slot] = i


@njit(nogil=True, cache=True)
def scan_tail(
    lookups: Queries,
    start: int,
    tail_mask: np.uint64,
    known: NDArray[np.bool_],
    table: TailTable,
    count: int,
    buffers: Buffers,
    found: int,
) -> tuple[int, int, int, int]:
    """For each query in turn, report its matches in the tail and then insert the query into the tail.

    `tail_mask` has the leading bits that the tail is hashed on, at most those of the queries' mask. A query that is
    `known`, or already in the tail, is not inserted. At most cap + 1 matches are reported per query: the nearest, and
    among equally near ones the smallest. Returns the next query, the number of pairs in the buffers, the number of keys
    in the tail, and the number of keys compared. The next query is before the end if the buffers have no room for a
    whole tail. The tail must have room for all queries that are not known.
    """
    queries, limits, mask, cap = lookups
    slots, tail, previous = table
    found_query, found_key = buffers
    scanned = 0
    for i in range(start, queries.size):
        if found + count > found_key.size:
            return i, found, count, scanned
        query = queries[i]
        limit = limits[i]
        slot = _slot_of(query & tail_mask, tail_mask, slots, tail)
        last = slots[slot]
        add = not known[i]
        before = found
        entry = last
        while entry != EMPTY:
            key = tail[entry]
            add &= key != query
            if popcount(key ^ query) <= limit and (key ^ query) & mask == U(0):
                found_query[found] = i
                found_key[found] = key
                found += 1
            entry = previous[entry]
            scanned += 1
        if found - before > cap + 1:
            found = _keep_nearest(found_key, before, found, query, cap + 1)
        if add:
            tail[count] = query
            previous[count] = last
            slots[slot] = count
            count += 1
    return queries.size, found, count, scanned


@njit(nogil=True, cache=True)
def _keep_nearest(keys: NDArray[np.uint64], start: int, stop: int, query: np.uint64, most: int) -> int:
    """Move the `most` nearest of keys[start:stop] to its beginning and return their end. Rare, so not optimized."""
    group = np.sort(keys[start:stop])
    full = start + most
    for distance in range(65):
        for key in group:
            if popcount(key ^ query) == U(distance):
                keys[start] = key
                start += 1
                if start == full:
                    return start
    return start


@njit(nogil=True, cache=True)
def mark_known(
    found_query: NDArray[np.int64],
    found_key: NDArray[np.uint64],
    start: int,
    stop: int,
    queries: NDArray[np.uint64],
    known: NDArray[np.bool_],
) -> None:
    """Set `known` for the queries that found an equal key, among the pairs from `start` to below `stop`."""
    for i in range(start, stop):
        number = found_query[i]
        known[number] |= found_key[i] == queries[number]
