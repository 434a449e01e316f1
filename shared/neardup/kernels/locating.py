"""A directory over sorted keys: where the keys with given leading bits begin."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

U = np.uint64


@njit(nogil=True, cache=True)
def extend_directory(
    keys: NDArray[np.uint64], start: int, stop: int, skip: int, bits: int, entries: NDArray[np.uint32], filled: int
) -> int:
    """Enter keys[start:stop]; once all are, entry j says where the first key with leading bits >= j stands.

    `filled` entries are in use, 0 before the first key; the new number is returned.
    """
    left = U(skip)
    right = U(64 - bits)
    if start < stop:
        last = int((keys[stop - 1] << left) >> right)
        entries[filled : last + 2] = 0
        # Where each entry's keys end is noted behind it, by the last of them, without a branch on where that is; then
        # entries that have none take over from the one before.
        for i in range(start, stop):
            entries[((keys[i] << left) >> right) + U(1)] = i + 1
        first = max(0, filled - 1)
        reached = entries[first]
        for j in range(first + 1, last + 2):
            reached = max(reached, entries[j])
            entries[j] = reached
        filled = last + 2
    if stop == keys.size:
        entries[filled:] = stop
        filled = entries.size
    return filled


@njit(nogil=True, cache=True)
def first_at_least(keys: NDArray[np.uint64], low: np.uint64, high: np.uint64, key: np.uint64) -> np.uint64:
    """The first index in [low, high) whose key is not smaller, or high."""
    while low < high:
        middle = (low + high) >> U(1)
        if keys[middle] < key:
            low = middle + U(1)
        else:
            high = middle
    return low
