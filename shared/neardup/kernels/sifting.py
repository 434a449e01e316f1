"""Which fingerprints of a long file can have a match at all: one bit read each, per table."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

U = np.uint64


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
    for i in range(fingerprints.size):
        fingerprint = fingerprints[i]
        key = U(0)
        for move in range(masks.size):
            part = fingerprint & masks[move]
            left = rotations[move]
            key |= (part << left) | (part >> ((U(64) - left) & U(63)))
        bucket = key >> right
        passed[count] = fingerprint
        count += np.int64((bitmap[bucket >> U(6)] >> (bucket & U(63))) & U(1))
    return int(count)
