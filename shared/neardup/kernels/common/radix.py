"""Sorting words by some of their bits, least digits first: some times faster than comparing them.

Large arrays are first divided by their leading digit, so that what follows stays in the cache.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

DIGIT = 12
"""Maximum number of bits per pass, limited by the number of write streams that the caches and the TLB can serve."""
NEAR = 1 << 20
"""Up to so many words stay near enough by themselves, and would come into stretches of few if they were divided."""
FEW = 192
"""So few are compared instead: counting digits would take longer."""


@njit(nogil=True, cache=True)
def _by_digit(
    words: NDArray[np.uint64], out: NDArray[np.uint64], shift: int, bits: int, ends: NDArray[np.int64]
) -> None:
    """Copy in the order of the digit at `shift`, equal ones as they stood; `ends[digit]` is where each one's end."""
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
    """Insertion: the order of equal ones stays, too."""
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
    """Sort into `out`; both are written over."""
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
    """Sort in place by the bits from `low` to below `high`, which must be the highest that differ.

    Words that agree in these keep their order. `scratch` is as long, and is written over.
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
