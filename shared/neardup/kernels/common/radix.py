"""Radix sort of words by some of their bits, least significant digit first.

It is several times faster than a sort by comparisons.

Large arrays are first divided by their most significant digit, so that each part is sorted within the cache.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

DIGIT = 12
"""Maximum number of bits per pass, limited by the number of write streams that the caches and the TLB can serve."""
NEAR = 1 << 20
"""Maximum number of words that are sorted without dividing them first: they fit the cache, and parts would be tiny."""
FEW = 192
"""Maximum number of words for an insertion sort. Counting the digits of so short an array would take longer."""


@njit(nogil=True, cache=True)
def _by_digit(
    words: NDArray[np.uint64], out: NDArray[np.uint64], shift: int, bits: int, ends: NDArray[np.int64]
) -> None:
    """Copy the words to `out`, stably sorted by the digit at `shift`. `ends[digit]` is set to the end of its words."""
    mask = (np.uint64(1) << np.uint64(bits)) - np.uint64(1)
    by = np.uint64(shift)
    ends[: np.int64(mask) + 1] = 0
    for i in range(words.size):
        ends[(words[i] >> by) & mask] += 1
    at = np.int64(0)
    for digit in range(np.int64(mask) + 1):
        count = ends[digit]
        ends[digit] = at
        at += count
    for i in range(words.size):
        digit = (words[i] >> by) & mask
        out[ends[digit]] = words[i]
        ends[digit] += 1


@njit(nogil=True, cache=True)
def _few(words: NDArray[np.uint64], low: int) -> None:
    """Sort in place by insertion, which is stable, by the bits from `low` on."""
    by = np.uint64(low)
    for i in range(1, words.size):
        word = words[i]
        j = i
        while j > 0 and words[j - 1] >> by > word >> by:
            words[j] = words[j - 1]
            j -= 1
        words[j] = word


@njit(nogil=True, cache=True)
def _by_digits(
    words: NDArray[np.uint64], out: NDArray[np.uint64], low: int, high: int, ends: NDArray[np.int64]
) -> None:
    """Sort the words into `out` by the bits from `low` to below `high`. Both arrays are overwritten."""
    passes = (high - low + DIGIT - 1) // DIGIT
    if passes % 2 == 0:
        out[:] = words
        words, out = out, words
    shift = low
    for number in range(passes):
        bits = (high - shift + passes - number - 1) // (passes - number)
        _by_digit(words, out, shift, bits, ends)
        words, out = out, words
        shift += bits


@njit(nogil=True, cache=True)
def sort_words(words: NDArray[np.uint64], scratch: NDArray[np.uint64], low: int, high: int) -> None:
    """Sort in place by the bits from `low` to below `high`. All words must agree in the bits from `high` on.

    The sort is stable. `scratch` must have the same size as `words` and is overwritten.
    """
    if high <= low or words.size < 2:
        return
    if words.size <= FEW:
        _few(words, low)
        return
    ends = np.empty(1 << DIGIT, np.int64)
    if words.size <= NEAR or high - low <= DIGIT:
        scratch[:] = words
        _by_digits(scratch, words, low, high, ends)
        return
    starts = np.empty(1 << DIGIT, np.int64)
    _by_digit(words, scratch, high - DIGIT, DIGIT, starts)
    start = np.int64(0)
    for end in starts:
        if end - start > FEW:
            _by_digits(scratch[start:end], words[start:end], low, high - DIGIT, ends)
        else:
            words[start:end] = scratch[start:end]
            _few(words[start:end], low)
        start = end
