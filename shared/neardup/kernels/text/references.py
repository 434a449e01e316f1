"""Resolution of character references such as &amp; and &#38; (HTML standard, from §13.2.5.72)."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from neardup.kernels.text.utf8 import encode

AMPERSAND = 38

FNV = np.uint64(0x100000001B3)
FNV_START = np.uint64(7)

# The code points for &#128; to &#159;, which browsers interpret as windows-1252 (§13.2.5.84).
_REMAP = np.array(
    [
        0x20AC, 0x81, 0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160, 0x2039, 0x0152, 0x8D,
        0x017D, 0x8F, 0x90, 0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014, 0x02DC, 0x2122, 0x0161, 0x203A,
        0x0153, 0x9D, 0x017E, 0x0178,
    ],
    dtype=np.int64,
)  # fmt: skip


@njit(nogil=True, cache=True)
def _lookup(key: np.uint64, keys: NDArray[np.uint64]) -> int:
    mask = keys.size - 1
    slot = np.int64(key >> np.uint64(32)) & mask
    while keys[slot] != 0:
        if keys[slot] == key:
            return slot
        slot = (slot + 1) & mask
    return np.int64(-1)


@njit(nogil=True, cache=True)
def reference(
    html: NDArray[np.uint8],
    at: int,
    keys: NDArray[np.uint64],
    codes: NDArray[np.uint32],
    out: NDArray[np.uint8],
    o: int,
) -> tuple[int, int]:
    """Write the character reference at html[at] to `out`, or the "&" if there is none (from §13.2.5.72).

    Returns the position after the reference in `html` and the position after the written bytes in `out`.
    """
    size = html.size
    i = at + 1
    if i < size and html[i] == 35:
        i += 1
        base = 10
        if i < size and html[i] | 32 == 120:
            base = 16
            i += 1
        first = i
        code = np.int64(0)
        while i < size:
            b = np.int64(html[i])
            if 48 <= b <= 57:
                digit = b - 48
            elif base == 16 and 97 <= (b | 32) <= 102:
                digit = (b | 32) - 87
            else:
                break
            code = min(code * base + digit, 0x110000)
            i += 1
        if i == first:
            out[o] = AMPERSAND
            return at + 1, o + 1
        if i < size and html[i] == 59:
            i += 1
        if code == 0 or code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            code = np.int64(0xFFFD)
        elif 0x80 <= code <= 0x9F:
            code = _REMAP[code - 0x80]
        return i, encode(code, out, o)
    key = FNV_START
    found = np.int64(-1)
    found_end = i
    while i < size and i - at <= 32:
        b = np.int64(html[i])
        if not (97 <= (b | 32) <= 122 or 48 <= b <= 57 or b == 59):
            break
        key = key * FNV ^ np.uint64(b)
        i += 1
        if i - at > 2:
            slot = _lookup(key, keys)
            if slot >= 0:
                found = slot
                found_end = i
        if b == 59:
            break
    if found < 0:
        out[o] = AMPERSAND
        return at + 1, o + 1
    o = encode(np.int64(codes[found, 0]), out, o)
    if codes[found, 1]:
        o = encode(np.int64(codes[found, 1]), out, o)
    return found_end, o


@njit(nogil=True, cache=True)
def copy_text(
    html: NDArray[np.uint8],
    at: int,
    end: int,
    keys: NDArray[np.uint64],
    codes: NDArray[np.uint32],
    out: NDArray[np.uint8],
    o: int,
) -> int:
    """Write html[at:end] with its references resolved to `out`, from `o` on, and return the position after it."""
    while at < end:
        b = html[at]
        if b == AMPERSAND:
            at, o = reference(html, at, keys, codes, out, o)
        else:
            out[o] = b
            o += 1
            at += 1
    return o
