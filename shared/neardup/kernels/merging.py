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
