"""Which fingerprints of a long file can have a match at all: one bit read each, per table."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from neardup.kernels.prefetching import prefetch

U = np.uint64
STRIDE = 256


@njit(nogil=True, cache=True)
def sift(
    fingerprints: NDArray[np.uint64],
    masks: NDArray[np.uint64],
    rotations: NDArray[np.uint64],
    bits: int,
    bitmap: NDArray[np.uint64],
    passed: NDArray[np.uint64],
) -> int:
    """Write the fingerprints whose leading permuted bits are in the bitmap to `passed`; return how many.

    The moves need only be those of the leading `bits` bits.
    """
    right = U(64 - bits)
    count = np.int64(0)
    keys = np.empty(STRIDE, np.uint64)
    for first in range(0, fingerprints.size, STRIDE):
        size = min(STRIDE, fingerprints.size - first)
        # Move by move over a stride, not key by key: that compiles to vector instructions.
        keys[:] = U(0)
        for move in range(masks.size):
            mask = masks[move]
            left = rotations[move]
            back = (U(64) - left) & U(63)
            for i in range(size):
                part = fingerprints[first + i] & mask
                keys[i] |= (part << left) | (part >> back)
        for i in range(size):
            prefetch(bitmap, (keys[i] >> right) >> U(6))
        for i in range(size):
            bucket = keys[i] >> right
            passed[count] = fingerprints[first + i]
            count += np.int64((bitmap[bucket >> U(6)] >> (bucket & U(63))) & U(1))
    return int(count)
