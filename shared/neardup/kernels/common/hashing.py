"""XXH64 (Yann Collet's xxHash) of bytes and of 64-bit words.

The hash of words equals the hash of their little-endian bytes. Arithmetic is modulo 2^64. Every constant is a `uint64`,
because numba converts an operation on uint64 and signed integers to floats.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from neardup.kernels.common.no_refcounts import njit_no_refcounts

P1 = np.uint64(0x9E3779B185EBCA87)
P2 = np.uint64(0xC2B2AE3D27D4EB4F)
P3 = np.uint64(0x165667B19E3779F9)
P4 = np.uint64(0x85EBCA77C2B2AE63)
P5 = np.uint64(0x27D4EB2F165667C5)


@njit(nogil=True, cache=True)
def rotate(x: np.uint64, by: int) -> np.uint64:
    """Rotate a word to the left by `by` bits."""
    return (x << np.uint64(by)) | (x >> np.uint64(64 - by))


@njit(nogil=True, cache=True)
def _round(lane: np.uint64, word: np.uint64) -> np.uint64:
    return rotate(lane + word * P2, 31) * P1


@njit(nogil=True, cache=True)
def _merge(h: np.uint64, lane: np.uint64) -> np.uint64:
    return (h ^ _round(np.uint64(0), lane)) * P1 + P4


@njit(nogil=True, cache=True)
def _step(h: np.uint64, word: np.uint64) -> np.uint64:
    return rotate(h ^ _round(np.uint64(0), word), 27) * P1 + P4


@njit(nogil=True, cache=True)
def avalanche(h: np.uint64) -> np.uint64:
    """Return the result of the last step of XXH64, which is by itself a good one-to-one mixer of 64 bits."""
    h = (h ^ (h >> np.uint64(33))) * P2
    h = (h ^ (h >> np.uint64(29))) * P3
    return h ^ (h >> np.uint64(32))


@njit(nogil=True, cache=True)
def _word(data: NDArray[np.uint8], at: np.uint64) -> np.uint64:
    # Unsigned indices need no code for negative ones, so LLVM combines the eight loads into one.
    word = np.uint64(data[at])
    for i in range(1, 8):
        word |= np.uint64(data[at + np.uint64(i)]) << np.uint64(8 * i)
    return word


@njit(nogil=True, cache=True)
def hash_bytes(data: NDArray[np.uint8], start: int, end: int, seed: np.uint64) -> np.uint64:
    """Return the XXH64 of `data[start:end]`."""
    at = np.uint64(start)
    stop = np.uint64(end)
    length = stop - at
    eight = np.uint64(8)
    if length >= np.uint64(32):
        a = seed + P1 + P2
        b = seed + P2
        c = seed
        d = seed - P1
        while stop - at >= np.uint64(32):
            a = _round(a, _word(data, at))
            b = _round(b, _word(data, at + eight))
            c = _round(c, _word(data, at + np.uint64(16)))
            d = _round(d, _word(data, at + np.uint64(24)))
            at += np.uint64(32)
        h = rotate(a, 1) + rotate(b, 7) + rotate(c, 12) + rotate(d, 18)
        h = _merge(_merge(_merge(_merge(h, a), b), c), d)
    else:
        h = seed + P5
    h += length
    while stop - at >= eight:
        h = _step(h, _word(data, at))
        at += eight
    if stop - at >= np.uint64(4):
        half = np.uint64(data[at])
        for i in range(1, 4):
            half |= np.uint64(data[at + np.uint64(i)]) << np.uint64(8 * i)
        h = rotate(h ^ (half * P1), 23) * P2 + P3
        at += np.uint64(4)
    while at < stop:
        h = rotate(h ^ (np.uint64(data[at]) * P5), 11) * P1
        at += np.uint64(1)
    return avalanche(h)


@njit(nogil=True, cache=True)
def hash_slices(data: NDArray[np.uint8], ends: NDArray[np.int64], seeds: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return `hash_bytes` of `data[ends[i] : ends[i + 1]]` with `seeds[i]`, for every i."""
    hashes = np.empty(seeds.size, np.uint64)
    for i in range(seeds.size):
        hashes[i] = hash_bytes(data, ends[i], ends[i + 1], seeds[i])
    return hashes


@njit_no_refcounts
def hash_words(words: NDArray[np.uint64], start: int, end: int, seed: np.uint64) -> np.uint64:
    """Return the XXH64 of the little-endian bytes of `words[start:end]`."""
    at = start
    length = np.uint64(8 * (end - start))
    if end - start >= 4:
        a = seed + P1 + P2
        b = seed + P2
        c = seed
        d = seed - P1
        while end - at >= 4:
            a = _round(a, words[at])
            b = _round(b, words[at + 1])
            c = _round(c, words[at + 2])
            d = _round(d, words[at + 3])
            at += 4
        h = rotate(a, 1) + rotate(b, 7) + rotate(c, 12) + rotate(d, 18)
        h = _merge(_merge(_merge(_merge(h, a), b), c), d)
    else:
        h = seed + P5
    h += length
    while at < end:
        h = _step(h, words[at])
        at += 1
    return avalanche(h)


@njit(nogil=True, cache=True)
def hash_word(word: np.uint64, seed: np.uint64) -> np.uint64:
    """Return the XXH64 of the eight bytes of a word."""
    return avalanche(_step(seed + P5 + np.uint64(8), word))


@njit(nogil=True, cache=True)
def hash_threes(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return `hash_words` of every three successive words, with seed 0.

    The first step of the hash depends on one word only and is computed once per word. The work is split into three
    loops: in a single loop the multiplications of a hash wait for each other, while iterations of a short loop overlap.
    """
    mixed = np.empty(words.size, dtype=np.uint64)
    out = np.empty(max(words.size - 2, 0), dtype=np.uint64)
    for i in range(words.size):
        mixed[i] = _round(np.uint64(0), words[i])
    for i in range(out.size):
        h = rotate((P5 + np.uint64(24)) ^ mixed[i], 27) * P1 + P4
        h = rotate(h ^ mixed[i + 1], 27) * P1 + P4
        out[i] = rotate(h ^ mixed[i + 2], 27) * P1 + P4
    for i in range(out.size):
        out[i] = avalanche(out[i])
    return out


@njit(nogil=True, cache=True)
def hash_each(words: NDArray[np.uint64], seed: np.uint64) -> NDArray[np.uint64]:
    """Return `hash_word` of every element."""
    out = np.empty(words.size, dtype=np.uint64)
    for i in range(words.size):
        out[i] = hash_word(words[i], seed)
    return out
