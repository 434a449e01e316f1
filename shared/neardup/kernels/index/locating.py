"""A directory of sorted keys: the range of the keys with given leading bits.

One word covers eight values of the leading bits, so that both ends of a value's range are found by one read:

    32 bits position of the first key with any of the values | 4 bits number of keys with the eighth | ... | the first

If a value has more keys than four bits can count, the word has DENSE in place of the counts. The range is then that of
all eight values together, and long ranges are searched by bisection.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from neardup.kernels.common.no_refcounts import njit_no_refcounts

U = np.uint64
VALUES = 8
VALUE_BITS = U(3)
POSITION_SHIFT = U(32)
COUNT = U(0xF)
DENSE = U(0xFFFFFFFF)
EVERY_OTHER_COUNT = U(0x0F0F0F0F)
IN_EVERY_BYTE = U(0x01010101)
WINDOW = 512


class Directory(NamedTuple):
    """A directory on the `bits` bits that follow the first `skip` bits, which all keys share."""

    words: NDArray[np.uint64]
    skip: int
    bits: int


@njit_no_refcounts
def bucket_of(key: np.uint64, skip: np.uint64, drop: np.uint64) -> np.uint64:
    """Return the leading bits of a key after the first `skip` ones. `drop` is 63 minus their number, which may be 0."""
    return ((key << skip) >> U(1)) >> drop


@njit_no_refcounts
def _counted(keys: NDArray[np.uint64], begin: np.uint64, end: np.uint64, skip: np.uint64, drop: np.uint64) -> np.uint64:
    """Return the counts of keys[begin:end] for each value of a word, or DENSE."""
    counts = U(0)
    for i in range(begin, end):
        place = (bucket_of(keys[i], skip, drop) & U(VALUES - 1)) << U(2)
        counts += U(1) << place
        if (counts >> place) & COUNT == COUNT:
            return DENSE
    return counts


@njit(nogil=True, cache=True)
def extend_directory(
    keys: NDArray[np.uint64], start: int, stop: int, skip: int, bits: int, words: NDArray[np.uint64], filled: int
) -> int:
    """Add keys[start:stop] to the directory and return the number of words in use.

    Successive calls must cover all keys in order. `filled` is the return value of the previous call, and 0 in the first
    call. The directory has one word more than the values need, which has the end of the last range.
    """
    left = U(skip)
    drop = U(63 - bits)
    ends = np.zeros(WINDOW, np.uint64)
    counts = np.zeros(WINDOW, np.uint64)
    at = filled
    reached = U(start)
    if start < stop and filled:
        # The last word in use may cover more keys.
        at -= 1
        reached = words[at] >> POSITION_SHIFT
        ends[0] = start
        counts[0] = words[at] & DENSE
    i = start
    while i < stop:
        # Count the keys of each word without a branch on whether a word ends. Words without keys then begin at the end
        # of the previous word.
        word = U(0)
        while i < stop:
            bucket = bucket_of(keys[U(i)], left, drop)
            its = (bucket >> VALUE_BITS) - U(at)
            if its >= U(WINDOW):
                break
            word = its
            i += 1
            ends[word] = i
            counts[word] += U(1) << ((bucket & U(VALUES - 1)) << U(2))
        used = int(word) + 1 if i == stop else WINDOW
        for each in range(used):
            begin = reached
            reached = max(begin, ends[U(each)])
            count = counts[U(each)]
            if reached - begin >= COUNT:
                # A count may have overflowed into the next count.
                count = _counted(keys, begin, reached, left, drop)
            words[U(at + each)] = (begin << POSITION_SHIFT) | count
        at += used
        ends[:] = U(0)
        counts[:] = U(0)
    if stop == keys.size:
        words[at:] = U(stop) << POSITION_SHIFT
        return words.size
    return at


@njit_no_refcounts
def range_of(words: NDArray[np.uint64], bucket: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Return (low, high), the range that has all keys with these leading bits. In a DENSE word it also has others."""
    at = bucket >> VALUE_BITS
    first = words[at] >> POSITION_SHIFT
    counts = words[at] & DENSE
    if counts == DENSE:
        return first, words[at + U(1)] >> POSITION_SHIFT
    place = (bucket & U(VALUES - 1)) << U(2)
    before = counts & ((U(1) << place) - U(1))
    # Sum up the counts of the previous values: first in pairs, into bytes, then the bytes by one multiplication.
    before = (before & EVERY_OTHER_COUNT) + ((before >> U(4)) & EVERY_OTHER_COUNT)
    low = first + (((before * IN_EVERY_BYTE) >> U(24)) & U(0xFF))
    return low, low + ((counts >> place) & COUNT)


@njit(nogil=True, cache=True)
def first_at_least(keys: NDArray[np.uint64], low: np.uint64, high: np.uint64, key: np.uint64) -> np.uint64:
    """Return the first index in [low, high) whose key is at least `key`, or `high` if there is none."""
    while low < high:
        middle = (low + high) >> U(1)
        if keys[middle] < key:
            low = middle + U(1)
        else:
            high = middle
    return low
