"""Permutation of the bits of fingerprints. A permutation is a list of masks, each with a distance of rotation."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

U = np.uint64
BLOCK = 512
"""Number of fingerprints that are permuted together, mask by mask, by vector instructions and within the L1 cache."""


@njit(nogil=True, cache=True)
def permute(
    fingerprints: NDArray[np.uint64], masks: NDArray[np.uint64], rotations: NDArray[np.uint64], out: NDArray[np.uint64]
) -> None:
    """Set out[i] to the OR of rotate_left(fingerprints[i] & mask, rotation) over all moves. Rotations are 0 to 63."""
    for start in range(0, fingerprints.size, BLOCK):
        some = fingerprints[start : start + BLOCK]
        keys = out[start : start + BLOCK]
        keys[:] = U(0)
        for move in range(masks.size):
            mask = masks[move]
            left = rotations[move]
            right = (U(64) - left) & U(63)
            for i in range(some.size):
                part = some[i] & mask
                keys[i] |= (part << left) | (part >> right)
