"""Moving the bits of fingerprints: a permutation is a few masks, each rotated by its own distance."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

U = np.uint64


@njit(nogil=True, cache=True)
def permute(
    fingerprints: NDArray[np.uint64], masks: NDArray[np.uint64], rotations: NDArray[np.uint64], out: NDArray[np.uint64]
) -> None:
    """out[i] = OR over moves of rotate_left(fingerprints[i] & mask, rotation), rotation in 0..63."""
    for i in range(fingerprints.size):
        fingerprint = fingerprints[i]
        key = U(0)
        for move in range(masks.size):
            part = fingerprint & masks[move]
            left = rotations[move]
            key |= (part << left) | (part >> ((U(64) - left) & U(63)))
        out[i] = key
