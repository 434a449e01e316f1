"""Which fingerprints of a long file can have a match at all: one bit read each, per table.

A bitmap for many queries is larger than the near caches. So the fingerprints are first arranged by leading bits that
several tables share: then each stretch of them reads one small piece of each bitmap.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

U = np.uint64
STRIDE = 256


@njit(nogil=True, cache=True)
def _move(
    fingerprints: NDArray[np.uint64],
    first: int,
    size: int,
    masks: NDArray[np.uint64],
    rotations: NDArray[np.uint64],
    keys: NDArray[np.uint64],
) -> None:
    """The permuted bits of a stride of fingerprints. Move by move, not key by key: that compiles to vectors."""
    keys[:] = U(0)
    for move in range(masks.size):
        mask = masks[move]
        left = rotations[move]
        back = (U(64) - left) & U(63)
        for i in range(size):
            part = fingerprints[first + i] & mask
            keys[i] |= (part << left) | (part >> back)


@njit(nogil=True, cache=True)
def arrange(
    fingerprints: NDArray[np.uint64],
    masks: NDArray[np.uint64],
    rotations: NDArray[np.uint64],
    bits: int,
    buckets: NDArray[np.uint16],
    out: NDArray[np.uint64],
) -> None:
    """Write the fingerprints to `out` in rising order of their leading permuted `bits` bits, at most 16.

    The moves need only be those of these bits. `buckets` is scratch, one a fingerprint.
    """
    right = U(64 - bits)
    places = np.zeros((1 << bits) + 1, np.uint64)
    keys = np.empty(STRIDE, np.uint64)
    for first in range(0, fingerprints.size, STRIDE):
        size = min(STRIDE, fingerprints.size - first)
        _move(fingerprints, first, size, masks, rotations, keys)
        for i in range(size):
            bucket = keys[U(i)] >> right
            buckets[U(first + i)] = bucket
            places[bucket + U(1)] += U(1)
    for bucket in range(1 << bits):
        places[bucket + 1] += places[bucket]
    for i in range(fingerprints.size):
        bucket = U(buckets[U(i)])
        out[places[bucket]] = fingerprints[U(i)]
        places[bucket] += U(1)


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
    count = U(0)
    keys = np.empty(STRIDE, np.uint64)
    for first in range(0, fingerprints.size, STRIDE):
        size = min(STRIDE, fingerprints.size - first)
        _move(fingerprints, first, size, masks, rotations, keys)
        for i in range(size):
            bucket = keys[U(i)] >> right
            passed[count] = fingerprints[U(first + i)]
            count += (bitmap[bucket >> U(6)] >> (bucket & U(63))) & U(1)
    return int(count)
