"""Keys that are in no run yet: the unsorted tail, compared one by one, and a large batch, compared with itself."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from neardup.kernels.bits import popcount

U = np.uint64
STRIDE = 64


@njit(nogil=True, cache=True)
def scan_tail(
    tail: NDArray[np.uint64],
    visible: int,
    step: int,
    queries: NDArray[np.uint64],
    limits: NDArray[np.uint64],
    mask: np.uint64,
    start: int,
    found_query: NDArray[np.int64],
    found_key: NDArray[np.uint64],
    found: int,
) -> tuple[int, int]:
    """Query i sees tail[:visible + i * step]; report keys that agree in `mask` and differ in at most limits[i] bits.

    Returns (next query, found); the next query is short of the end when the buffers have no room for a whole tail.
    """
    # Half the width, twice the keys an instruction: the upper 32 bits sort out nearly all of them.
    upper = np.empty(tail.size, np.uint32)
    for position in range(min(tail.size, visible + queries.size * step)):
        upper[position] = (tail[position] & mask) >> U(32)
    for i in range(start, queries.size):
        end = visible + i * step
        if found + end > found_key.size:
            return i, found
        query = queries[i]
        wanted = query & mask
        sought = np.uint32(wanted >> U(32))
        limit = limits[i]
        for first in range(0, end, STRIDE):
            stop = min(first + STRIDE, end)
            # Counting without a branch compiles to vector instructions; hits are rare and looked at again.
            hits = np.uint32(0)
            for position in range(first, stop):
                hits += np.uint32(upper[position] == sought)
            if hits:
                for position in range(first, stop):
                    key = tail[position]
                    if (key & mask) == wanted and popcount(key ^ query) <= limit:
                        found_query[found] = i
                        found_key[found] = key
                        found += 1
    return queries.size, found


@njit(nogil=True, cache=True)
def pairs_of_batch(
    ordered: NDArray[np.uint64],
    order: NDArray[np.int64],
    limits: NDArray[np.uint64],
    mask: np.uint64,
    start: int,
    found_query: NDArray[np.int64],
    found_key: NDArray[np.uint64],
    found: int,
) -> tuple[int, int]:
    """Report for each key of a batch the earlier ones that agree in `mask` and differ in at most limits[key] bits.

    `ordered` are the keys in rising order and `order` their places in the batch: those that agree stand together.
    Returns (next position, found), the position short of the end when the buffers have no room.
    """
    for i in range(start, ordered.size):
        if found + ordered.size - i > found_key.size:
            return i, found
        key = ordered[i]
        j = i + 1
        while j < ordered.size and ((ordered[j] ^ key) & mask) == U(0):
            other = ordered[j]
            late = max(order[i], order[j])
            if popcount(other ^ key) <= limits[late]:
                found_query[found] = late
                found_key[found] = key if late == order[j] else other
                found += 1
            j += 1
    return ordered.size, found
