"""A directory over sorted keys: where the keys with given leading bits begin.

An entry would be a position of 32 bits. Neighbouring entries are near each other, so they are kept in groups: `bases`
has the position of each group's first entry, `offsets` a byte an entry, how much further that one is. With this the
directory of tens of millions of keys stays in the far cache, and a probe waits for memory once. An offset of FAR means
FAR or more: clustered keys, whose place is then found by halving.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from neardup.kernels.prefetching import prefetch

U = np.uint64
GROUP = 16
GROUP_BITS = U(4)
FAR = 255


@njit(nogil=True, cache=True)
def extend_directory(
    keys: NDArray[np.uint64],
    start: int,
    stop: int,
    skip: int,
    bits: int,
    bases: NDArray[np.uint32],
    offsets: NDArray[np.uint8],
    filled: int,
) -> int:
    """Enter keys[start:stop]; once all are, entry j says where the first key with leading bits >= j stands.

    `filled` entries are in use, 0 before the first key; the new number is returned.
    """
    left = U(skip)
    right = U(64 - bits)
    if start < stop:
        last = int((keys[stop - 1] << left) >> right)
        first = max(0, filled - 1)
        # Where each entry's keys end is noted behind it, by the last of them, without a branch on where that is; then
        # entries that have none take over from the one before.
        ends = np.zeros(last + 2 - first, np.uint32)
        ends[0] = start
        shift = U(1) - U(first)
        for i in range(start, stop):
            ends[((keys[i] << left) >> right) + shift] = i + 1
        reached = np.uint32(0)
        base = bases[first // GROUP]
        for j in range(first, last + 2):
            reached = max(reached, ends[j - first])
            if j % GROUP == 0:
                base = reached
                bases[j // GROUP] = base
            offsets[j] = min(reached - base, np.uint32(FAR))
        filled = last + 2
    if stop == keys.size:
        for j in range(filled, offsets.size):
            if j % GROUP == 0:
                bases[j // GROUP] = stop
            offsets[j] = min(np.uint32(stop) - bases[j // GROUP], np.uint32(FAR))
        bases[-1] = stop
        filled = offsets.size
    return filled


@njit(nogil=True, cache=True)
def prefetch_entry(bases: NDArray[np.uint32], offsets: NDArray[np.uint8], entry: np.uint64) -> None:
    """Ask for what `begin_of` and `end_of` will read."""
    prefetch(bases, entry >> GROUP_BITS)
    prefetch(offsets, entry)


@njit(nogil=True, cache=True)
def begin_of(bases: NDArray[np.uint32], offsets: NDArray[np.uint8], entry: np.uint64) -> np.uint64:
    """Where the entry's keys begin, or a place before that."""
    return U(bases[entry >> GROUP_BITS]) + U(offsets[entry])


@njit(nogil=True, cache=True)
def end_of(bases: NDArray[np.uint32], offsets: NDArray[np.uint8], entry: np.uint64) -> np.uint64:
    """Where the keys of all entries before this one end, or a place behind that."""
    offset = offsets[entry]
    if offset == FAR:
        return U(bases[(entry >> GROUP_BITS) + U(1)])
    return U(bases[entry >> GROUP_BITS]) + U(offset)


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
