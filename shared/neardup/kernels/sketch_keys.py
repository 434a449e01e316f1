"""Keys of packed sketches, by which documents meet, and what the sketches of those that met say.

Sketches stand one after the other in `words`; that of a row ends where the next one starts. See `comparing`.
"""

# Integers are numpy's at run time and Python's in the signatures: numba needs the one, readers the other.
# mypy: disable-error-code="arg-type,assignment,return-value,no-any-return"

import numpy as np
from numba import njit
from numpy.typing import NDArray

from neardup.kernels.hashing import hash_word, hash_words
from neardup.kernels.shingling import sorted_ngrams

_BYTE = np.uint64(0xFF)
_SPOT = ~_BYTE
_SPOTS = np.uint64(6)
"""Seed of the keys of spots."""


@njit(nogil=True, cache=True)
def _values(sketch: NDArray[np.uint64]) -> int:
    """Length of the MIPs vector."""
    return np.int64(sketch[0] >> np.uint64(8) & np.uint64(0xFFFF))


@njit(nogil=True, cache=True)
def _sample(sketch: NDArray[np.uint64]) -> NDArray[np.uint64]:
    start = 1 + (_values(sketch) + 7) // 8
    return sketch[start : start + np.int64(sketch[0] >> np.uint64(32))]


@njit(nogil=True, cache=True)
def _spots(sketch: NDArray[np.uint64]) -> NDArray[np.uint64]:
    return sketch[sketch.size - np.int64(sketch[0] >> np.uint64(24) & _BYTE) :]


@njit(nogil=True, cache=True)
def sample_keys(
    words: NDArray[np.uint64], starts: NDArray[np.int64], rows: NDArray[np.int64]
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """The sampled shingles of each row, one row after the other, and how many each has."""
    sizes = np.zeros(rows.size, np.int64)
    for i in range(rows.size):
        if starts[rows[i] + 1] > starts[rows[i]]:
            sizes[i] = np.int64(words[starts[rows[i]]] >> np.uint64(32))
    keys = np.empty(sizes.sum(), np.uint64)
    at = 0
    for i in range(rows.size):
        if sizes[i]:
            keys[at : at + sizes[i]] = _sample(words[starts[rows[i]] : starts[rows[i] + 1]])
            at += sizes[i]
    return keys, sizes


@njit(nogil=True, cache=True)
def super_keys(
    words: NDArray[np.uint64], starts: NDArray[np.int64], rows: NDArray[np.int64], size: int
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """The same for super shingles: every `size` neighbours of the sorted sample."""
    sizes = np.zeros(rows.size, np.int64)
    keys = np.empty(sample_keys(words, starts, rows)[0].size, np.uint64)
    at = 0
    for i in range(rows.size):
        if starts[rows[i] + 1] > starts[rows[i]]:
            found = sorted_ngrams(_sample(words[starts[rows[i]] : starts[rows[i] + 1]]), size)
            keys[at : at + found.size] = found
            sizes[i] = found.size
            at += found.size
    return keys[:at], sizes


@njit(nogil=True, cache=True)
def _bytes(sketch: NDArray[np.uint64], start: int, count: int) -> np.uint64:
    """So many bytes of the MIPs vector, at most 8, as a word."""
    shift = np.uint64(8 * (start % 8))
    word = sketch[1 + start // 8] >> shift
    if start % 8 + count > 8:
        word |= sketch[2 + start // 8] << (np.uint64(64) - shift)
    return word & (np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(64 - 8 * count))


@njit(nogil=True, cache=True)
def band_keys(
    words: NDArray[np.uint64], starts: NDArray[np.int64], rows: NDArray[np.int64], k: int, s: int
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """The same for k bands of s MIPs values: the hash of a band's number and of the byte that is kept of each value."""
    sizes = np.zeros(rows.size, np.int64)
    keys = np.empty(rows.size * k, np.uint64)
    at = 0
    for i in range(rows.size):
        sketch = words[starts[rows[i]] : starts[rows[i] + 1]]
        if not sketch.size or _values(sketch) < k * s:
            continue
        for band in range(k):
            key = np.uint64(band)
            for start in range(band * s, band * s + s, 8):
                key = hash_word(_bytes(sketch, start, min(8, band * s + s - start)), key)
            keys[at] = key
            at += 1
        sizes[i] = k
    return keys[:at], sizes


@njit(nogil=True, cache=True)
def spot_sizes(words: NDArray[np.uint64], starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The size of every row's bag of spots, with repeats."""
    sizes = np.zeros(starts.size - 1, np.int64)
    for row in range(sizes.size):
        sketch = words[starts[row] : starts[row + 1]]
        if sketch.size:
            for spot in _spots(sketch):
                sizes[row] += np.int64(spot & _BYTE)
    return sizes


@njit(nogil=True, cache=True)
def spot_keys(
    words: NDArray[np.uint64], starts: NDArray[np.int64], rows: NDArray[np.int64]
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """The same for spots. One that occurs n times has n keys, so that bags are compared as sets are."""
    sizes = np.zeros(rows.size, np.int64)
    for i in range(rows.size):
        sizes[i] = spot_sizes(words, starts[rows[i] : rows[i] + 2])[0]
    keys = np.empty(sizes.sum(), np.uint64)
    pair = np.empty(2, np.uint64)
    at = 0
    for i in range(rows.size):
        if sizes[i]:
            for spot in _spots(words[starts[rows[i]] : starts[rows[i] + 1]]):
                pair[0] = spot & _SPOT
                for number in range(np.int64(spot & _BYTE)):
                    pair[1] = np.uint64(number)
                    keys[at] = hash_words(pair, 0, 2, _SPOTS)
                    at += 1
    return keys, sizes


@njit(nogil=True, cache=True)
def sample_sizes(words: NDArray[np.uint64], starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many sampled shingles every row has."""
    sizes = np.zeros(starts.size - 1, np.int64)
    for row in range(sizes.size):
        if starts[row + 1] > starts[row]:
            sizes[row] = np.int64(words[starts[row]] >> np.uint64(32))
    return sizes


@njit(nogil=True, cache=True)
def score_samples(
    words: NDArray[np.uint64],
    starts: NDArray[np.int64],
    pairs: NDArray[np.uint64],
    least_resemblance: float,
    least_containment: float,
    least_sampled: int,
) -> NDArray[np.float32]:
    """Resemblance, or containment one way or the other, whichever is most, by samples at the coarser modulus.

    -1 for pairs that reach neither of the least values. Containment of a document of which fewer than `least_sampled`
    shingles are left does not count.
    """
    scores = np.full(pairs.size, np.float32(-1))
    for place in range(pairs.size):
        a = np.int64(pairs[place] >> np.uint64(32))
        b = np.int64(pairs[place] & np.uint64(0xFFFFFFFF))
        exponent = max(words[starts[a]] & _BYTE, words[starts[b]] & _BYTE)
        mask = (np.uint64(1) << exponent) - np.uint64(1)
        left = _sample(words[starts[a] : starts[a + 1]])
        right = _sample(words[starts[b] : starts[b + 1]])
        shared = 0
        i = 0
        j = 0
        # What both have is divisible by either modulus.
        while i < left.size and j < right.size:
            x = left[i]
            y = right[j]
            shared += x == y
            i += x <= y
            j += y <= x
        sizes = 0
        containment = 0.0
        for sample in (left, right):
            size = 0
            for value in sample:
                size += value & mask == np.uint64(0)
            sizes += size
            if size >= least_sampled:
                containment = max(containment, shared / size)
        resemblance = shared / (sizes - shared) if shared else 0.0
        if resemblance >= least_resemblance or containment >= least_containment:
            scores[place] = max(resemblance, containment)
    return scores


@njit(nogil=True, cache=True)
def score_spots(
    words: NDArray[np.uint64],
    starts: NDArray[np.int64],
    sizes: NDArray[np.int64],
    pairs: NDArray[np.uint64],
    least: float,
) -> NDArray[np.float32]:
    """Resemblance of the bags of spots; -1 for pairs below the least."""
    scores = np.full(pairs.size, np.float32(-1))
    for place in range(pairs.size):
        a = np.int64(pairs[place] >> np.uint64(32))
        b = np.int64(pairs[place] & np.uint64(0xFFFFFFFF))
        # Bags of such different sizes cannot resemble (`spotsigs.can_resemble`).
        if min(sizes[a], sizes[b]) < least * max(sizes[a], sizes[b]):
            continue
        left = _spots(words[starts[a] : starts[a + 1]])
        right = _spots(words[starts[b] : starts[b + 1]])
        i = 0
        j = 0
        shared = 0
        while i < left.size and j < right.size:
            x = left[i] & _SPOT
            y = right[j] & _SPOT
            if x == y:
                shared += np.int64(min(left[i] & _BYTE, right[j] & _BYTE))
            i += x <= y
            j += y <= x
        resemblance = shared / (sizes[a] + sizes[b] - shared)
        if resemblance >= least:
            scores[place] = resemblance
    return scores
