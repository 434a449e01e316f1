"""From UTF-8 text to canonical tokens, in one pass over the bytes.

Every character is replaced by its case-folded compatibility decomposition (the frozen table), combining marks are
put in canonical order, and the result is cut: runs of word characters are tokens; runs of characters of a script
without spaces become overlapping n-grams of characters, a mark staying with the character it belongs to.
Bytes that are not UTF-8 separate, one by one.
"""

# Integers are numpy's at run time and Python's in the signatures: numba needs the one, readers the other.
# mypy: disable-error-code="arg-type,assignment,return-value,no-any-return"

import numpy as np
from numba import njit
from numpy.typing import NDArray

SEPARATOR = 0
WORD = 1
UNSPACED = 2
MARK = 3
IGNORABLE = 4

LOOKBACK = 30
"""How many marks a mark may move past: Unicode's own bound (UAX 15, stream-safe text); keeps hostile text linear."""

MAX_NGRAM = 8

OTHER = np.uint8(1)


@njit(nogil=True, cache=True)
def decode(data: NDArray[np.uint8], at: int, end: int) -> tuple[int, int]:
    """The code point at `at` and its length in bytes; (-1, 1) if there is none. As strict as the standard."""
    b = np.int64(data[at])
    if b < 0x80:
        return b, 1
    if b < 0xC2 or b > 0xF4:
        return np.int64(-1), 1
    size = 2 if b < 0xE0 else (3 if b < 0xF0 else 4)
    if at + size > end:
        return np.int64(-1), 1
    code = b & (0x7F >> size)
    for i in range(1, size):
        c = np.int64(data[at + i])
        if c & 0xC0 != 0x80:
            return np.int64(-1), 1
        code = code << 6 | (c & 0x3F)
    if (size == 3 and code < 0x800) or (0xD800 <= code <= 0xDFFF) or (size == 4 and not 0x10000 <= code <= 0x10FFFF):
        return np.int64(-1), 1
    return code, size


@njit(nogil=True, cache=True)
def encode(code: int, out: NDArray[np.uint8], at: int) -> int:
    """Write a code point as UTF-8; return where it ends."""
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


@njit(nogil=True, cache=True)
def entry_of(code: int, stage1: NDArray[np.uint16], stage2: NDArray[np.int32]) -> int:
    """The table's entry for a code point: class | combining class << 3 | (mapping + 1) << 11."""
    return np.int64(stage2[np.int64(stage1[code >> 8]) * 256 + (code & 255)])


@njit(nogil=True, cache=True)
def _place_of_mark(
    out: NDArray[np.uint8], start: int, end: int, rank: int, stage1: NDArray[np.uint16], stage2: NDArray[np.int32]
) -> int:
    # Canonical ordering (Unicode 3.11): a mark goes before those of higher combining class, never past a starter.
    place = end
    for _ in range(LOOKBACK):
        at = place - 1
        while at > start and out[at] & 0xC0 == 0x80:
            at -= 1
        if at < start:
            break
        code, _ = decode(out, at, end)
        if entry_of(code, stage1, stage2) >> 3 & 255 <= rank:
            break
        place = at
    return place


@njit(nogil=True, cache=True)
def _ascii_run(
    text: NDArray[np.uint8],
    first: int,
    stop: int,
    folded: NDArray[np.uint8],
    out: NDArray[np.uint8],
    written: int,
    starts: NDArray[np.int32],
    ends: NDArray[np.int32],
    counted: int,
    token: int,
    kind: int,
) -> tuple[int, int, int, int, int]:
    # No branch on what a byte is: where words end is what no predictor can guess. Words stand back to back in `out`, so
    # the start of one is the end of the one before. Unsigned indices spare the check for negative ones.
    one = np.uint64(1)
    at = np.uint64(first)
    end = np.uint64(stop)
    o = np.uint64(written)
    count = np.uint64(counted)
    inside = np.uint64(kind == WORD)
    starts[count] = token
    while at < end:
        f = folded[text[at]]
        if f == OTHER:
            break
        word = np.uint64(f != 0)
        ends[count] = np.int32(o)
        starts[count + one] = np.int32(o)
        count += inside & (word ^ one)
        out[o] = f
        o += word
        inside = word
        at += one
    return np.int64(at), np.int64(o), np.int64(count), np.int64(starts[count]), np.int64(inside)


@njit(nogil=True, cache=True)
def tokenize(
    text: NDArray[np.uint8],
    stage1: NDArray[np.uint16],
    stage2: NDArray[np.int32],
    mapping: NDArray[np.uint32],
    folded: NDArray[np.uint8],
    ngram: int,
    limit: int,
    out: NDArray[np.uint8],
    starts: NDArray[np.int32],
    ends: NDArray[np.int32],
) -> tuple[int, int]:
    """Write canonical bytes to `out` and the places of at most `limit` + 1 tokens; return (tokens, bytes).

    (-1, 0) asks for more room: `out` must hold the text plus 256, four times that for most text that is not ASCII;
    `starts` and `ends` half of that. `folded[b]` is the canonical form of an ASCII word character, 0 for a separator,
    OTHER for what is not ASCII.
    n-grams overlap, so tokens may.
    """
    size = text.size
    unit = np.zeros(MAX_NGRAM, dtype=np.int64)  # where the last characters of an unspaced run start
    units = 0
    kind = SEPARATOR
    token = 0
    o = 0
    count = 0
    at = 0
    while at < size and count <= limit:
        # Room for everything left to read as ASCII, plus one mapping.
        if out.size - o < size - at + 128 or starts.size - count < (size - at) // 2 + 64:
            return -1, 0
        if text[at] < 0x80:
            if kind == UNSPACED:
                count = _end_of_run(starts, ends, count, unit, units, ngram, token, o)
                kind = SEPARATOR
            if kind == SEPARATOR:
                token = o
            # So far no more than limit + 1 tokens can end: each takes two bytes.
            stop = min(size, at + 2 * (limit - count) + 1)
            at, o, count, token, inside = _ascii_run(text, at, stop, folded, out, o, starts, ends, count, token, kind)
            kind = WORD if inside else SEPARATOR
            continue
        code, width = decode(text, at, size)
        at += width
        entry = np.int64(0) if code < 0 else entry_of(code, stage1, stage2)
        if entry & 7 == IGNORABLE:
            continue
        first = (entry >> 11) - 1
        pieces = np.int64(1) if first < 0 else np.int64(mapping[first])
        for i in range(pieces):
            if first >= 0:
                code = np.int64(mapping[first + 1 + i])
                entry = entry_of(code, stage1, stage2)
            what = entry & 7
            if what == MARK:
                if kind != SEPARATOR:  # a mark without a base is nothing to read
                    o = _put_mark(code, entry >> 3 & 255, out, token, o, stage1, stage2)
                continue
            if kind == WORD and what != WORD:
                starts[count] = token
                ends[count] = o
                count += 1
            elif kind == UNSPACED:
                if what != UNSPACED:
                    count = _end_of_run(starts, ends, count, unit, units, ngram, token, o)
                elif units >= ngram:
                    starts[count] = unit[(units - ngram) % MAX_NGRAM]
                    ends[count] = o
                    count += 1
            if what == SEPARATOR:
                kind = SEPARATOR
                continue
            if kind != what:
                kind = what
                token = o
                units = 0
            if what == UNSPACED:
                unit[units % MAX_NGRAM] = o
                units += 1
            o = encode(code, out, o)
    if kind == WORD:
        starts[count] = token
        ends[count] = o
        count += 1
    elif kind == UNSPACED:
        count = _end_of_run(starts, ends, count, unit, units, ngram, token, o)
    return count, o


@njit(nogil=True, cache=True)
def _put_mark(
    code: int,
    rank: int,
    out: NDArray[np.uint8],
    token: int,
    o: int,
    stage1: NDArray[np.uint16],
    stage2: NDArray[np.int32],
) -> int:
    place = o if rank == 0 else _place_of_mark(out, token, o, rank, stage1, stage2)
    end = encode(code, out, o)
    if place < o:
        grown = end - o
        for j in range(o - 1, place - 1, -1):
            out[j + grown] = out[j]
        encode(code, out, place)
    return end


@njit(nogil=True, cache=True)
def _end_of_run(
    starts: NDArray[np.int32],
    ends: NDArray[np.int32],
    count: int,
    unit: NDArray[np.int64],
    units: int,
    ngram: int,
    token: int,
    end: int,
) -> int:
    # The last n-gram of the run, or the whole run when it is shorter than one.
    starts[count] = unit[(units - ngram) % MAX_NGRAM] if units >= ngram else token
    ends[count] = end
    return count + 1
