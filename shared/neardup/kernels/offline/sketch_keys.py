"""Keys of packed sketches, by which the offline pass finds pairs of documents, and scores of these pairs.

The sketches are in `words`, one after the other. The sketch of a row begins at starts[row] and ends at the start of the
next row's sketch. The module `comparing` defines their format.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from neardup.kernels.common.hashing import hash_word, hash_words
from neardup.kernels.offline.postings import LEVELS, MOST
from neardup.kernels.signatures.shingling import sorted_ngrams

_BYTE = np.uint64(0xFF)
_SPOT = ~_BYTE
_SPOTS = np.uint64(6)
"""Seed of the keys of spots."""


class SampledRows(NamedTuple):
    """The sketches of all rows, with the exponents and sizes of their samples by `sample_sizes`."""

    words: NDArray[np.uint64]
    starts: NDArray[np.int64]
    exponents: NDArray[np.uint8]
    sizes: NDArray[np.uint16]


@njit(nogil=True, cache=True)
def _values(sketch: NDArray[np.uint64]) -> int:
    """Return the length of the MIPs vector."""
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
    """Return the sampled shingles of all rows, one row after the other, and their number per row."""
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
    """Return super shingles as keys, as `sample_keys` does: every `size` neighbours of the sorted sample."""
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
    """Return `count` bytes of the MIPs vector, at most 8, as a word."""
    shift = np.uint64(8 * (start % 8))
    word = sketch[1 + start // 8] >> shift
    if start % 8 + count > 8:
        word |= sketch[2 + start // 8] << (np.uint64(64) - shift)
    return word & (np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(64 - 8 * count))


@njit(nogil=True, cache=True)
def band_keys(
    words: NDArray[np.uint64], starts: NDArray[np.int64], rows: NDArray[np.int64], k: int, s: int
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Return the keys of k bands of s MIPs values: the hash of a band's number and its MIPs bytes."""
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
    """Return the size of each row's bag of spots, including repeats."""
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
    """Return the keys of spots. A spot that occurs n times has n keys, so that bags are compared as sets."""
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
def sample_sizes(words: NDArray[np.uint64], starts: NDArray[np.int64]) -> tuple[NDArray[np.uint8], NDArray[np.uint16]]:
    """Return the exponent of each row's modulus, and the size of its sample at this and the following moduli.

    There are LEVELS moduli per row. A size of MOST stands for MOST or more.
    """
    exponents = np.zeros(starts.size - 1, np.uint8)
    sizes = np.zeros((starts.size - 1, LEVELS), np.uint16)
    for row in range(exponents.size):
        sketch = words[starts[row] : starts[row + 1]]
        if not sketch.size:
            continue
        exponents[row] = sketch[0] & _BYTE
        here = np.zeros(LEVELS, np.int64)
        for value in _sample(sketch):
            above = value >> np.uint64(exponents[row])
            here[0] += 1
            level = 1
            while level < LEVELS and not above & np.uint64(1):
                here[level] += 1
                above >>= np.uint64(1)
                level += 1
        sizes[row] = np.minimum(here, MOST)
    return exponents, sizes


@njit(nogil=True, cache=True)
def _size_at(
    words: NDArray[np.uint64],
    starts: NDArray[np.int64],
    sizes: NDArray[np.uint16],
    row: int,
    level: int,
) -> int:
    """Return the size of a sample at a modulus `level` steps coarser. The sample is read only if `sizes` lacks it."""
    if level < LEVELS and sizes[row, level] < MOST:
        return np.int64(sizes[row, level])
    sketch = words[starts[row] : starts[row + 1]]
    mask = (np.uint64(1) << ((sketch[0] & _BYTE) + np.uint64(level))) - np.uint64(1)
    size = 0
    for value in _sample(sketch):
        size += value & mask == np.uint64(0)
    return size


@njit(nogil=True, cache=True)
def _common(left: NDArray[np.uint64], right: NDArray[np.uint64]) -> int:
    """Return the number of shingles that two samples share. Without branches, as they would be mispredicted."""
    shared = 0
    i = 0
    j = 0
    while i < left.size and j < right.size:
        x = left[i]
        y = right[j]
        shared += x == y
        i += x <= y
        j += y <= x
    return shared


@njit(nogil=True, cache=True)
def _likeness(shared: int, smaller: int, larger: int, least_sampled: int) -> tuple[float, float]:
    """Return the resemblance, and the containment of the smaller sample that has at least `least_sampled` shingles."""
    if not shared:
        return 0.0, 0.0
    if larger < least_sampled:
        return shared / (smaller + larger - shared), 0.0
    return shared / (smaller + larger - shared), shared / (smaller if smaller >= least_sampled else larger)


@njit(nogil=True, cache=True)
def score_samples(
    rows: SampledRows,
    pairs: NDArray[np.uint64],
    counts: NDArray[np.uint32],
    beyond: NDArray[np.uint16],
    least_resemblance: float,
    least_containment: float,
    least_sampled: int,
) -> NDArray[np.float32]:
    """Score pairs of rows by their samples at the coarser modulus: resemblance or containment, whichever is greater.

    Pairs that reach neither of the least values score -1. Containment of a document with fewer than `least_sampled`
    shingles in its sample does not count. counts[i] is a lower bound for the number of shingles that pair i shares.

    `beyond` has the number of shingles of each row that were not counted. The last column applies to pairs with any
    row. The columns before apply to pairs in which the row is the smaller one, at its own modulus and at the following
    moduli. MOST stands for MOST or more.
    """
    words, starts, exponents, sizes = rows
    scores = np.full(pairs.size, np.float32(-1))
    with_any = beyond.shape[1] - 1
    for place in range(pairs.size):
        a = np.int64(pairs[place] >> np.uint64(32))
        b = np.int64(pairs[place] & np.uint64(0xFFFFFFFF))
        apart = np.int64(exponents[b]) - np.int64(exponents[a])
        smaller = _size_at(words, starts, sizes, a, max(apart, 0))
        larger = _size_at(words, starts, sizes, b, max(-apart, 0))
        level_of_smaller = max(apart, 0)
        one, other = a, b
        if larger < smaller:
            smaller, larger = larger, smaller
            level_of_smaller = max(-apart, 0)
            one, other = b, a
        # Most pairs share only parts of a template. If the upper bound is too low, the samples are not compared.
        missed = np.int64(beyond[one, min(level_of_smaller, with_any)]) + np.int64(beyond[other, with_any])
        most = smaller if missed >= MOST else min(smaller, np.int64(counts[place]) + missed)
        resemblance, containment = _likeness(most, smaller, larger, least_sampled)
        if resemblance < least_resemblance and containment < least_containment:
            continue
        left = words[starts[a] : starts[a + 1]]
        right = words[starts[b] : starts[b + 1]]
        resemblance, containment = _likeness(_common(_sample(left), _sample(right)), smaller, larger, least_sampled)
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
    """Return the resemblance of the bags of spots of each pair, or -1 if it is below `least`."""
    scores = np.full(pairs.size, np.float32(-1))
    for place in range(pairs.size):
        a = np.int64(pairs[place] >> np.uint64(32))
        b = np.int64(pairs[place] & np.uint64(0xFFFFFFFF))
        # Bags of such different sizes cannot reach the threshold (see `spot_signatures.can_resemble`).
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
