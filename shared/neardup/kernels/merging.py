"""Merging two sorted runs a bounded number of keys at a time."""

import numpy as np
from numba import njit
from numpy.typing import NDArray


@njit(nogil=True, cache=True)
def merge_step(
    older: NDArray[np.uint64],
    newer: NDArray[np.uint64],
    i: int,
    j: int,
    out: NDArray[np.uint64],
    o: int,
    budget: int,
) -> tuple[int, int, int]:
    """Write at most `budget` more keys of the union to out[o:]; return the three positions. Done when o stands still.

    A key in both is written once.
    """
    stop = o + budget
    while o < stop and i < older.size and j < newer.size:
        x = older[i]
        y = newer[j]
        # No branch on the comparison: on random keys it would be mispredicted every other time.
        out[o] = min(x, y)
        i += x <= y
        j += y <= x
        o += 1
    if j == newer.size:
        count = min(stop - o, older.size - i)
        out[o : o + count] = older[i : i + count]
        i += count
        o += count
    if i == older.size:
        count = min(stop - o, newer.size - j)
        out[o : o + count] = newer[j : j + count]
        j += count
        o += count
    return i, j, o


@njit(nogil=True, cache=True)
def merge_pairs_step(
    older_keys: NDArray[np.uint64],
    older_values: NDArray[np.uint64],
    newer_keys: NDArray[np.uint64],
    newer_values: NDArray[np.uint64],
    i: int,
    j: int,
    keys: NDArray[np.uint64],
    values: NDArray[np.uint64],
    budget: int,
) -> tuple[int, int]:
    """The same for pairs in order of key, then value, of which no two are equal; i + j have been written before."""
    o = i + j
    stop = o + budget
    while o < stop and i < older_keys.size and j < newer_keys.size:
        x = older_keys[i]
        y = newer_keys[j]
        from_older = x < y or (x == y and older_values[i] < newer_values[j])
        keys[o] = x if from_older else y
        values[o] = older_values[i] if from_older else newer_values[j]
        i += from_older
        j += not from_older
        o += 1
    if j == newer_keys.size:
        count = min(stop - o, older_keys.size - i)
        keys[o : o + count] = older_keys[i : i + count]
        values[o : o + count] = older_values[i : i + count]
        i += count
        o += count
    if i == older_keys.size:
        count = min(stop - o, newer_keys.size - j)
        keys[o : o + count] = newer_keys[j : j + count]
        values[o : o + count] = newer_values[j : j + count]
        j += count
    return i, j
