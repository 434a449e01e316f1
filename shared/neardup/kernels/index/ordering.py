"""Sorting of matches by query, then distance, then key, without repeats."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from neardup.kernels.common.bits import popcount


@njit(nogil=True, cache=True)
def group_by_query(
    found_query: NDArray[np.int64], found_key: NDArray[np.uint64], found: int, queries: int
) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Return (ends, keys), where keys[ends[q] : ends[q + 1]] are the keys found by query q, in their original order."""
    # A counting sort, as there are many queries with few pairs each.
    ends = np.zeros(queries + 1, np.int64)
    for i in range(found):
        ends[found_query[i] + 1] += 1
    for q in range(queries):
        ends[q + 1] += ends[q]
    starts = ends.copy()
    keys = np.empty(found, np.uint64)
    for i in range(found):
        q = found_query[i]
        keys[starts[q]] = found_key[i]
        starts[q] += 1
    return ends, keys


@njit(nogil=True, cache=True)
def order_matches(
    found_query: NDArray[np.int64],
    found_key: NDArray[np.uint64],
    found: int,
    queries: NDArray[np.uint64],
    cap: int,
    out_query: NDArray[np.int64],
    out_key: NDArray[np.uint64],
    out_distance: NDArray[np.uint8],
) -> tuple[int, int]:
    """Write the first `found` pairs in order to the out arrays, at most `cap` per query.

    Returns the number of pairs written and the number of queries with more pairs than the cap.
    """
    ends, keys = group_by_query(found_query, found_key, found, queries.size)
    written = 0
    capped = 0
    for q in range(queries.size):
        low = ends[q]
        count = ends[q + 1] - low
        if count == 0:
            continue
        group = keys[low : low + count]
        if count > 1:
            group.sort()
        first = written
        full = False
        nearest = np.int64(64)
        for i in range(count):
            nearest = min(nearest, np.int64(popcount(group[i] ^ queries[q])))
        distance = nearest
        taken = 0
        repeats = 0
        while taken + repeats < count and not full:
            for i in range(count):
                if np.int64(popcount(group[i] ^ queries[q])) != distance:
                    continue
                if i > 0 and group[i] == group[i - 1]:
                    repeats += 1
                    continue
                if taken == cap:
                    full = True
                    break
                out_query[first + taken] = q
                out_key[first + taken] = group[i]
                out_distance[first + taken] = distance
                taken += 1
            distance += 1
        written += taken
        capped += full
    return written, capped
