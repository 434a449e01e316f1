"""A bitmap filter for batch search, which drops fingerprints of a file that cannot match by reading one bit per table.

The bitmap of a large batch does not fit the L2 cache. The fingerprints of a block of the file are therefore grouped by
the first bits of a block of bits that leads in several tables, and each group reads one small part of the bitmaps.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

U = np.uint64
STRIDE = 256


@njit(nogil=True, cache=True)
def group_by_bits(fingerprints: NDArray[np.uint64], first: int, bits: int, out: NDArray[np.uint64]) -> None:
    """Write the fingerprints to `out` in rising order of the `bits` bits from bit `first` on, by counting sort."""
    left = U(first)
    right = U(64 - bits)
    places = np.zeros((1 << bits) + 1, np.uint64)
    for i in range(fingerprints.size):
        places[((fingerprints[U(i)] << left) >> right) + U(1)] += U(1)
    for bucket in range(1 << bits):
        places[bucket + 1] += places[bucket]
    for i in range(fingerprints.size):
        bucket = (fingerprints[U(i)] << left) >> right
        out[places[bucket]] = fingerprints[U(i)]
        places[bucket] += U(1)


@njit(nogil=True, cache=True)
def filter_by_bitmap(
    fingerprints: NDArray[np.uint64],
    masks: NDArray[np.uint64],
    rotations: NDArray[np.uint64],
    bits: int,
    bitmap: NDArray[np.uint64],
    passed: NDArray[np.uint64],
) -> int:
    """Write the fingerprints whose leading permuted bits are in the bitmap to `passed` and return their number.

    `masks` and `rotations` need only contain the moves of the leading `bits` bits, of which there is at least one.
    """
    right = U(64 - bits)
    count = U(0)
    buckets = np.empty(STRIDE, np.uint64)
    for first in range(0, fingerprints.size, STRIDE):
        size = min(STRIDE, fingerprints.size - first)
        # Two moves per pass over a stride of fingerprints compile to vector instructions. Most tables have at most two
        # moves.
        for move in range(0, masks.size, 2):
            mask = masks[move]
            left = rotations[move]
            back = (U(64) - left) & U(63)
            second = move + 1 < masks.size
            other_mask = masks[move + 1] if second else U(0)
            other_left = rotations[move + 1] if second else U(0)
            other_back = (U(64) - other_left) & U(63)
            kept = ~U(0) if move else U(0)
            for i in range(size):
                fingerprint = fingerprints[U(first) + U(i)]
                part = fingerprint & mask
                other = fingerprint & other_mask
                key = (part << left) | (part >> back) | (other << other_left) | (other >> other_back)
                buckets[U(i)] = (buckets[U(i)] & kept) | (key >> right)
        for i in range(size):
            bucket = buckets[U(i)]
            passed[count] = fingerprints[U(first) + U(i)]
            count += (bitmap[bucket >> U(6)] >> (bucket & U(63))) & U(1)
    return int(count)
