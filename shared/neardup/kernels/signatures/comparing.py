"""Packing and comparison of sketches.

A packed sketch is an array of 64-bit words:

- the header: the exponent of the modulus in the low 8 bits, the length of the MIPs vector in the next 16 bits, the
  number of spot signatures in the next 8 bits, and the size of the sample in the upper 32 bits,
- the low byte of every MIPs value, eight bytes per word,
- the sampled shingles, sorted,
- the spot signatures.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from neardup.kernels.common.bits import popcount

_LOW = np.uint64(0x7F7F7F7F7F7F7F7F)
_BYTES = 8
_SAMPLE_AT = np.uint64(32)
_BY_CHANCE = 1 / 256
_SEEN_BITS = 16


@njit(nogil=True, cache=True)
def pack(exponent: int, mips: NDArray[np.uint32], sample: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the packed form of a sketch, without spot signatures."""
    words = (mips.size + _BYTES - 1) // _BYTES
    packed = np.zeros(1 + words + sample.size, dtype=np.uint64)
    packed[0] = np.uint64(exponent) | np.uint64(mips.size) << np.uint64(8) | np.uint64(sample.size) << _SAMPLE_AT
    for j in range(mips.size):
        packed[1 + j // _BYTES] |= np.uint64(mips[j] & np.uint32(0xFF)) << np.uint64(8 * (j % _BYTES))
    packed[1 + words :] = sample
    return packed


@njit(nogil=True, cache=True)
def mips_length(packed: NDArray[np.uint64]) -> int:
    """Return the length of the MIPs vector of a sketch."""
    return np.int64(packed[0] >> np.uint64(8) & np.uint64(0xFFFF))


@njit(nogil=True, cache=True)
def equal_bytes(a: NDArray[np.uint64], b: NDArray[np.uint64]) -> int:
    """Return the number of equal MIPs bytes. Both sketches must have MIPs vectors of the same length."""
    m = mips_length(a)
    words = (m + _BYTES - 1) // _BYTES
    equal = m
    for j in range(1, 1 + words):
        differing = a[j] ^ b[j]
        # The high bit of each nonzero byte of `differing`. Unused bytes of the last word are zero in both sketches.
        marks = (((differing & _LOW) + _LOW) | differing) & ~_LOW
        equal -= np.int64(popcount(marks))
    return equal


@njit(nogil=True, cache=True)
def resemblance(equal: int, m: int) -> float:
    """Estimate resemblance from the number of equal bytes among m, corrected for bytes that are equal by chance."""
    return max(0.0, (equal / m - _BY_CHANCE) / (1 - _BY_CHANCE))


@njit(nogil=True, cache=True)
def compare(a: NDArray[np.uint64], b: NDArray[np.uint64]) -> tuple[int, int, int, int]:
    """Return (equal MIPs bytes, size of a's sample, size of b's sample, size of their intersection).

    The samples are compared at the coarser modulus of the two. Both MIPs vectors must have the same length.
    """
    left, right, shared = compare_samples(a, b)
    return equal_bytes(a, b), left, right, shared


@njit(nogil=True, cache=True)
def compare_samples(a: NDArray[np.uint64], b: NDArray[np.uint64]) -> tuple[int, int, int]:
    """Return the last three values of `compare`: the sizes of the samples and of their intersection."""
    start = 1 + (mips_length(a) + _BYTES - 1) // _BYTES
    one = a[start : start + np.int64(a[0] >> _SAMPLE_AT)]
    other = b[start : start + np.int64(b[0] >> _SAMPLE_AT)]
    exponent = max(a[0] & np.uint64(0xFF), b[0] & np.uint64(0xFF))
    mask = (np.uint64(1) << np.uint64(exponent)) - np.uint64(1)
    left = right = shared = np.int64(0)
    for i in range(one.size):
        left += (one[i] & mask) == np.uint64(0)
    for j in range(other.size):
        right += (other[j] & mask) == np.uint64(0)
    i = j = np.int64(0)
    while i < one.size and j < other.size:
        x = one[i]
        y = other[j]
        # Without branches, as a branch on the next value would often be mispredicted.
        shared += (x ^ y | x & mask) == np.uint64(0)
        i += x <= y
        j += y <= x
    return left, right, shared


@njit(nogil=True, cache=True)
def shared_bands(a: NDArray[np.uint64], b: NDArray[np.uint64], first: int, end: int, s: int) -> np.uint64:
    """Return a word whose bit i is set if two sketches agree in band first + i, which consists of s MIPs bytes.

    Bands from `first` to below `end` are compared, which must be at most 64.
    """
    shared = np.uint64(0)
    for band in range(first, end):
        same = True
        for j in range(band * s, band * s + s):
            differing = (a[1 + j // _BYTES] ^ b[1 + j // _BYTES]) >> np.uint64(8 * (j % _BYTES))
            if differing & np.uint64(0xFF):
                same = False
                break
        if same:
            shared |= np.uint64(1) << np.uint64(band - first)
    return shared


@njit(nogil=True, cache=True)
def compare_with_each(
    sketch: NDArray[np.uint64], others: NDArray[np.uint64], ends: NDArray[np.int64], out: NDArray[np.int64]
) -> None:
    """Write the result of `compare` for the sketch and the i-th other sketch, which ends at ends[i], to out[i].

    All values are 0 if the other sketch is empty, and the three sizes are 0 if the samples have no common shingle.
    Nearly all pairs of samples have none, which a bitmap with one bit per shingle shows much faster than a merge.
    """
    words = (mips_length(sketch) + _BYTES - 1) // _BYTES
    seen = np.zeros(1 << _SEEN_BITS - 6, np.uint64)
    for j in range(1 + words, 1 + words + int(sketch[0] >> _SAMPLE_AT)):
        place = sketch[j] >> np.uint64(64 - _SEEN_BITS)
        seen[place >> np.uint64(6)] |= np.uint64(1) << (place & np.uint64(63))
    start = 0
    for i in range(ends.size):
        other = others[start : ends[i]]
        start = ends[i]
        out[i, :] = 0
        if not other.size:
            continue
        hits = np.uint64(0)
        for j in range(1 + words, 1 + words + int(other[0] >> _SAMPLE_AT)):
            place = other[j] >> np.uint64(64 - _SEEN_BITS)
            hits |= seen[place >> np.uint64(6)] >> (place & np.uint64(63))
        if hits & np.uint64(1):
            equal, left, right, shared = compare(sketch, other)
            if shared:
                out[i, 1], out[i, 2], out[i, 3] = left, right, shared
            out[i, 0] = equal
        else:
            out[i, 0] = equal_bytes(sketch, other)
