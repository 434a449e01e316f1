"""Moving the bits of fingerprints: a permutation is a few masks, each rotated by its own distance."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

U = np.uint64
BLOCK = 512
"""Fingerprints that are moved together, a mask at a time: vectors of them, and they stay in the nearest cache."""


@njit(nogil=True, cache=True)
def permute(
    fingerprints: NDArray[np.uint64], masks: NDArray[np.uint64], rotations: NDArray[np.uint64], out: NDArray[np.uint64]
) -> None:
    """out[i] = OR over moves of rotate_left(fingerprints[i] & mask, rotation), rotation in 0..63."""
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
