"""The first 64 bits of MurmurHash3_x64_128 (Austin Appleby), the hash function of tokens.

Tokens are short, and their lengths are unpredictable. MurmurHash3 processes up to 15 bytes without a branch on the
length, which makes it twice as fast as XXH64 on tokens. On longer input XXH64 is faster.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from neardup.kernels.common.hashing import rotate

SLACK = 16
"""Number of bytes behind the last token that must be readable. They are loaded and masked."""

_C1 = np.uint64(0x87C37B91114253D5)
_C2 = np.uint64(0x4CF5AD432745937F)

_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_AT_ONCE = 128

_MASKS = np.array([(1 << 8 * min(size, 8)) - 1 for size in range(17)], dtype=np.uint64)


@njit(nogil=True, cache=True)
def _load(data: NDArray[np.uint8], at: np.uint64) -> np.uint64:
    # Unsigned indices need no code for negative ones, so LLVM combines the eight loads into one.
    word = np.uint64(data[at])
    for i in range(1, 8):
        word |= np.uint64(data[at + np.uint64(i)]) << np.uint64(8 * i)
    return word


@njit(nogil=True, cache=True)
def _final(k: np.uint64) -> np.uint64:
    k = (k ^ (k >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    k = (k ^ (k >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return k ^ (k >> np.uint64(33))


@njit(nogil=True, cache=True)
def hash_token(data: NDArray[np.uint8], start: int, end: int) -> np.uint64:
    """Return the first 64 bits of MurmurHash3_x64_128 of `data[start:end]`, with seed 0. Reads SLACK bytes more."""
    at = np.uint64(start)
    length = np.uint64(end - start)
    left = end - start
    h1 = np.uint64(0)
    h2 = np.uint64(0)
    while left >= 16:
        k1 = rotate(_load(data, at) * _C1, 31) * _C2
        k2 = rotate(_load(data, at + np.uint64(8)) * _C2, 33) * _C1
        h1 = (rotate(h1 ^ k1, 27) + h2) * np.uint64(5) + np.uint64(0x52DCE729)
        h2 = (rotate(h2 ^ k2, 31) + h1) * np.uint64(5) + np.uint64(0x38495AB5)
        at += np.uint64(16)
        left -= 16
    # A word of zeros mixes to zero, so both words of the rest are mixed in whether or not they exist.
    h1 ^= rotate((_load(data, at) & _MASKS[left]) * _C1, 31) * _C2
    h2 ^= rotate((_load(data, at + np.uint64(8)) & _MASKS[max(left - 8, 0)]) * _C2, 33) * _C1
    h1 ^= length
    h2 ^= length
    h1 += h2
    h2 += h1
    return _final(h1) + _final(h2)


@njit(nogil=True, cache=True)
def hash_tokens(canonical: NDArray[np.uint8], starts: NDArray[np.int32], ends: NDArray[np.int32]) -> NDArray[np.uint64]:
    """Return `hash_token` of every token.

    The work is split into three short loops over some tokens at a time, so that the processor overlaps iterations. In a
    single loop the eight multiplications of a token wait for each other, which takes twice as long.
    """
    hashes = np.empty(starts.size, dtype=np.uint64)
    low = np.empty(_AT_ONCE, dtype=np.uint64)
    high = np.empty(_AT_ONCE, dtype=np.uint64)
    for done in range(0, starts.size, _AT_ONCE):
        first = starts[done : done + _AT_ONCE]
        last = ends[done : done + _AT_ONCE]
        out = hashes[done : done + _AT_ONCE]
        longest = np.uint64(0)
        for i in range(out.size):
            at = np.uint64(first[i])
            length = np.uint64(last[i]) - at
            part = ~(_ALL << (length << np.uint64(3) & np.uint64(63)))
            low[i] = _load(canonical, at) & (part if length < np.uint64(8) else _ALL)
            high[i] = _load(canonical, at + np.uint64(8)) & (np.uint64(0) if length < np.uint64(8) else part)
            longest |= length
        for i in range(out.size):
            length = np.uint64(last[i] - first[i])
            h1 = rotate(low[i] * _C1, 31) * _C2 ^ length
            h2 = rotate(high[i] * _C2, 33) * _C1 ^ length
            low[i] = h1 + h2
            high[i] = h1 + h2 + h2
        for i in range(out.size):
            out[i] = _final(low[i]) + _final(high[i])
        if longest >= np.uint64(16):
            for i in range(out.size):
                if last[i] - first[i] >= 16:
                    out[i] = hash_token(canonical, np.int64(first[i]), np.int64(last[i]))
    return hashes
