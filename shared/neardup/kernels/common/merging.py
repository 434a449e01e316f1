"""Merging two sorted runs a bounded number of entries at a time.

An entry is a key, or a pair of a key and a value. Pairs are ordered by key, then by value. If entries are keys only,
the arrays of values are None. No entry is in both runs.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

Values = NDArray[np.uint64] | None


@njit(nogil=True, cache=True)
def _is_before(
    keys: NDArray[np.uint64], values: Values, i: int, other_keys: NDArray[np.uint64], other_values: Values, j: int
) -> bool:
    x = keys[i]
    y = other_keys[j]
    if values is not None and other_values is not None:
        # `&` and `|` evaluate all comparisons: a short circuit is a branch, which would often be mispredicted.
        return bool((x < y) | ((x == y) & (values[i] < other_values[j])))
    return bool(x < y)


@njit(nogil=True, cache=True)
def _share_of_older(
    older: NDArray[np.uint64],
    older_values: Values,
    newer: NDArray[np.uint64],
    newer_values: Values,
    i: int,
    j: int,
    count: int,
) -> int:
    """Return how many of the next `count` entries are from the older run."""
    low = max(0, count - (newer.size - j))
    high = min(count, older.size - i)
    while low < high:
        middle = (low + high) >> 1
        if _is_before(older, older_values, i + middle, newer, newer_values, j + count - middle - 1):
            low = middle + 1
        else:
            high = middle
    return low


@njit(nogil=True, cache=True)
def merge_step(
    older: NDArray[np.uint64],
    older_values: Values,
    newer: NDArray[np.uint64],
    newer_values: Values,
    done: tuple[int, int],
    out: NDArray[np.uint64],
    out_values: Values,
    budget: int,
) -> tuple[int, int]:
    """Merge at most `budget` more entries into `out`.

    `done` is the number of entries of each run that are merged already. Returns the new numbers.
    """
    i, j = done
    count = min(budget, older.size - i + newer.size - j)
    share = _share_of_older(older, older_values, newer, newer_values, i, j, count)
    end_i = i + share
    end_j = j + count - share
    # Merge from both ends towards the middle. Each entry's position depends on the comparison before, so the processor
    # runs the two chains of comparisons in parallel. There is no branch on comparisons: half would be mispredicted.
    last_i = end_i
    last_j = end_j
    while min(last_i - i, last_j - j) >= 2:
        for _ in range(min(last_i - i, last_j - j) >> 1):
            from_older = _is_before(older, older_values, i, newer, newer_values, j)
            o = i + j
            out[o] = older[i] if from_older else newer[j]
            if out_values is not None and older_values is not None and newer_values is not None:
                # Both values are read before one is selected: reading only one of them would need a branch.
                x = older_values[i]
                y = newer_values[j]
                out_values[o] = x if from_older else y
            i += from_older
            j += not from_older
            from_newer = _is_before(older, older_values, last_i - 1, newer, newer_values, last_j - 1)
            o = last_i + last_j - 1
            out[o] = newer[last_j - 1] if from_newer else older[last_i - 1]
            if out_values is not None and older_values is not None and newer_values is not None:
                x = older_values[last_i - 1]
                y = newer_values[last_j - 1]
                out_values[o] = y if from_newer else x
            last_i -= not from_newer
            last_j -= from_newer
    # At least one of the runs has at most one entry left here, so this loop need not be fast.
    while i < last_i or j < last_j:
        from_older = j == last_j or (i < last_i and _is_before(older, older_values, i, newer, newer_values, j))
        o = i + j
        out[o] = older[i] if from_older else newer[j]
        if out_values is not None and older_values is not None and newer_values is not None:
            out_values[o] = older_values[i] if from_older else newer_values[j]
        i += from_older
        j += not from_older
    return end_i, end_j
