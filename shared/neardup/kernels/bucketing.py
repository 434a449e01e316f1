"""Exact lookups in sorted pairs (bucket key, fingerprint)."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

U = np.uint64


@njit(nogil=True, cache=True)
def bucket_ranges(
    keys: NDArray[np.uint64],
    directory: NDArray[np.uint32],
    bits: int,
    queries: NDArray[np.uint64],
    lows: NDArray[np.int64],
    highs: NDArray[np.int64],
) -> None:
    """For each query the range of `keys` (sorted, with repeats) that equals it."""
    right = U(64 - bits)
    for i in range(queries.size):
        query = queries[i]
        bucket = query >> right
        low = np.int64(directory[bucket])
        end = np.int64(directory[bucket + U(1)])
        high = end
        while low < high:
            middle = (low + high) >> 1
            if keys[middle] < query:
                low = middle + 1
            else:
                high = middle
        lows[i] = low
        high = end
        bottom = low
        while bottom < high:
            middle = (bottom + high) >> 1
            if keys[middle] <= query:
                bottom = middle + 1
            else:
                high = middle
        highs[i] = bottom
