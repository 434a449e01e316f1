"""Decoding and encoding of a single code point in UTF-8."""

import numpy as np
from numpy.typing import NDArray

from neardup.kernels.common.no_refcounts import njit_no_refcounts


@njit_no_refcounts
def decode(data: NDArray[np.uint8], at: int, end: int) -> tuple[int, int]:
    """Return the code point at `at` and its length in bytes, or (-1, 1) if the bytes are not valid UTF-8."""
    place = np.uint64(at)  # unsigned indices avoid the check for negative ones
    b = np.int64(data[place])
    if b < 0x80:
        return b, 1
    if b < 0xC2 or b > 0xF4 or at + 1 >= end:
        return np.int64(-1), 1
    c = np.int64(data[place + np.uint64(1)])
    if c & 0xC0 != 0x80:
        return np.int64(-1), 1
    code = (b & 0x1F) << 6 | (c & 0x3F)
    if b < 0xE0:
        return code, 2
    size = 3 if b < 0xF0 else 4
    if at + size > end:
        return np.int64(-1), 1
    for i in range(2, size):
        c = np.int64(data[place + np.uint64(i)])
        if c & 0xC0 != 0x80:
            return np.int64(-1), 1
        code = code << 6 | (c & 0x3F)
    code &= 0x1FFFFF  # the mask above keeps one bit too many of the first of four bytes
    if (size == 3 and code < 0x800) or (0xD800 <= code <= 0xDFFF) or (size == 4 and not 0x10000 <= code <= 0x10FFFF):
        return np.int64(-1), 1
    return code, size


@njit_no_refcounts
def encode(code: int, out: NDArray[np.uint8], at: int) -> int:
    """Write a code point in UTF-8 to `out` and return the position after it."""
    if code < 0x80:
        out[at] = code
        return at + 1
    if code < 0x800:
        out[at] = 0xC0 | code >> 6
        out[at + 1] = 0x80 | (code & 0x3F)
        return at + 2
    if code < 0x10000:
        out[at] = 0xE0 | code >> 12
        out[at + 1] = 0x80 | (code >> 6 & 0x3F)
        out[at + 2] = 0x80 | (code & 0x3F)
        return at + 3
    out[at] = 0xF0 | code >> 18
    out[at + 1] = 0x80 | (code >> 12 & 0x3F)
    out[at + 2] = 0x80 | (code >> 6 & 0x3F)
    out[at + 3] = 0x80 | (code & 0x3F)
    return at + 4
