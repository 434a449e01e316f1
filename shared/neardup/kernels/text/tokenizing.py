"""Tokenization of UTF-8 text into canonical tokens, in one pass over the bytes.

Each character is replaced by its case-folded compatibility decomposition, by the frozen table, and combining marks are
put in canonical order. Each run of word characters is then a token. Each run of characters of a script without spaces
becomes overlapping n-grams of characters, in which a mark stays with its base character. Every byte that is not part
of valid UTF-8 is a separator.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from neardup.kernels.common.murmur import hash_tokens
from neardup.kernels.common.no_refcounts import njit_no_refcounts
from neardup.kernels.text.ascii_blocks import TokenBuffers, ascii_run
from neardup.kernels.text.utf8 import decode, encode

SEPARATOR = 0
WORD = 1
UNSPACED = 2
MARK = 3
IGNORABLE = 4

LOOKBACK = 30
"""Maximum number of marks that a mark is moved past, which keeps time linear (UAX 15, stream-safe text format)."""

MAX_NGRAM = 8

ONE = np.uint64(1)
RING = np.uint64(MAX_NGRAM - 1)


class Characters(NamedTuple):
    """The frozen Unicode table: a two-stage table from code points to entries, and the mappings of entries."""

    stage1: NDArray[np.uint16]
    stage2: NDArray[np.int32]
    mapping: NDArray[np.uint32]


class Progress(NamedTuple):
    """The state of the tokenizer between two characters."""

    at: int
    """Position of the next byte of the text."""
    written: int
    """Number of canonical bytes in the buffers."""
    count: int
    """Number of tokens in the buffers."""
    units: int
    """Number of characters in the current run of an unspaced script."""
    token: int
    """Position of the canonical byte at which the current token starts."""
    kind: int
    """Class of the previous character: SEPARATOR, WORD or UNSPACED."""


@njit_no_refcounts
def entry_of(code: int, stage1: NDArray[np.uint16], stage2: NDArray[np.int32]) -> int:
    """Return the table's entry for a code point: class | combining class << 3 | (mapping + 1) << 11."""
    row = np.uint64(stage1[np.uint64(code >> 8)])
    return np.int64(stage2[row << np.uint64(8) | np.uint64(code & 255)])


@njit_no_refcounts
def _place_of_mark(
    out: NDArray[np.uint8], start: int, end: int, rank: int, stage1: NDArray[np.uint16], stage2: NDArray[np.int32]
) -> int:
    # Canonical ordering (Unicode 3.11): a mark moves before marks of higher combining class, but not before a starter.
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


@njit_no_refcounts
def _plain_run(
    text: NDArray[np.uint8],
    characters: Characters,
    ngram: int,
    limit: int,
    buffers: TokenBuffers,
    unit: NDArray[np.int64],
    progress: Progress,
) -> Progress:
    # Process characters of up to three bytes that the table maps to themselves, including isolated ASCII characters.
    # Most text that is not ASCII consists of these. At any other character, return to the caller.
    stage1, stage2, _ = characters
    out, starts, ends = buffers
    at = np.uint64(progress.at)
    size = np.uint64(text.size)
    o = np.uint64(progress.written)
    count = np.uint64(progress.count)
    most = np.uint64(limit)
    gram = np.uint64(ngram)
    units = np.uint64(progress.units)
    token = np.uint64(progress.token)
    kind = np.uint64(progress.kind)
    while at + np.uint64(3) <= size and count <= most:
        a = np.uint64(text[at])
        b = np.uint64(text[at + ONE])
        c = np.uint64(text[at + np.uint64(2)])
        if a < np.uint64(0x80):
            if (b | c) < np.uint64(0x80):
                break
            code = a
            width = ONE
        elif a < np.uint64(0xE0):
            if a < np.uint64(0xC2) or b & np.uint64(0xC0) != np.uint64(0x80):
                break
            code = (a & np.uint64(0x1F)) << np.uint64(6) | (b & np.uint64(0x3F))
            width = np.uint64(2)
        else:
            code = (a & np.uint64(0xF)) << np.uint64(12) | (b & np.uint64(0x3F)) << np.uint64(6) | (c & np.uint64(0x3F))
            width = np.uint64(3)
            if (
                a >= np.uint64(0xF0)
                or (b << np.uint64(8) | c) & np.uint64(0xC0C0) != np.uint64(0x8080)
                or code < np.uint64(0x800)
                or code >> np.uint64(11) == np.uint64(0x1B)
            ):
                break
        entry = entry_of(code, stage1, stage2)
        what = np.uint64(entry & 7)
        if entry > UNSPACED:
            # A mark stays in its place if its combining class is 0 or if it follows an ASCII letter.
            if what != np.uint64(MARK) or entry >> 11 or (entry >> 3 and kind and out[o - ONE] >= 0x80):
                break
        elif what != kind:
            whole = kind != np.uint64(UNSPACED) or units < gram
            starts[count] = np.int32(token) if whole else np.int32(unit[units - gram & RING])
            ends[count] = np.int32(o)
            count += np.uint64(kind != np.uint64(SEPARATOR))
            kind = what
            token = o
            unit[0] = np.int64(o)
            units = np.uint64(kind == np.uint64(UNSPACED))
        elif kind == np.uint64(UNSPACED):
            starts[count] = np.int32(unit[units - gram & RING])
            ends[count] = np.int32(o)
            count += np.uint64(units >= gram)
            unit[units & RING] = np.int64(o)
            units += ONE
        if kind:
            out[o] = np.uint8(a)
            out[o + ONE] = np.uint8(b)
            out[o + np.uint64(2)] = np.uint8(c)
            o += width
        at += width
    return Progress(np.int64(at), np.int64(o), np.int64(count), np.int64(units), np.int64(token), np.int64(kind))


@njit(nogil=True, cache=True)
def tokenize(
    text: NDArray[np.uint8],
    stage1: NDArray[np.uint16],
    stage2: NDArray[np.int32],
    mapping: NDArray[np.uint32],
    ngram: int,
    limit: int,
    out: NDArray[np.uint8],
    places: NDArray[np.int32],
) -> tuple[NDArray[np.uint64], int]:
    """Cut text into tokens; return the hashes of the first `limit` tokens and the number of tokens.

    The canonical bytes of the tokens are in `out`, where n-grams overlap. The first half of `places` has the position
    at which each token starts, the second half the position at which it ends. Tokenization stops soon after the limit,
    with a number above the limit. A number of -1 means that the buffers are too small: `out` and `places` need the size
    of the text plus 256, and four times that for most text that is not ASCII.
    """
    half = places.size // 2
    starts = places[:half]
    ends = places[half:]
    unit = np.zeros(MAX_NGRAM, dtype=np.int64)  # a ring of the starts of the latest characters of an unspaced run
    count = _cut(text, Characters(stage1, stage2, mapping), ngram, limit, TokenBuffers(out, starts, ends), unit)
    kept = max(min(count, limit), 0)
    return hash_tokens(out, starts[:kept], ends[:kept]), count


@njit_no_refcounts
def _cut(
    text: NDArray[np.uint8],
    characters: Characters,
    ngram: int,
    limit: int,
    buffers: TokenBuffers,
    unit: NDArray[np.int64],
) -> int:
    stage1, stage2, mapping = characters
    out, starts, ends = buffers
    size = text.size
    units = 0
    kind = SEPARATOR
    token = 0
    o = 0
    count = 0
    at = 0
    while at < size and count <= limit:
        # There must be room for the rest of the text, if it is ASCII, and for one mapping.
        if out.size - o < size - at + 128 or starts.size - count < (size - at) // 2 + 64:
            return -1
        if text[np.uint64(at)] < 0x80:
            if kind == UNSPACED:
                count = _end_of_run(starts, ends, count, unit, units, ngram, token, o)
                kind = SEPARATOR
            starts[count] = token
            at, o, count, inside = ascii_run(text, at, limit, buffers, o, count, kind == WORD)
            kind = WORD if inside else SEPARATOR
            token = np.int64(starts[count])
            continue
        progress = Progress(at, o, count, units, token, kind)
        at, o, count, units, token, kind = _plain_run(text, characters, ngram, limit, buffers, unit, progress)
        if at >= size or text[np.uint64(at)] < 0x80 or count > limit:
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
                if kind != SEPARATOR:  # a mark without a base character is dropped
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
    return count


@njit_no_refcounts
def _put_mark(
    code: int,
    rank: int,
    out: NDArray[np.uint8],
    token: int,
    o: int,
    stage1: NDArray[np.uint16],
    stage2: NDArray[np.int32],
) -> int:
    # Most marks follow an ASCII letter and need not be moved.
    place = o if rank == 0 or out[o - 1] < 0x80 else _place_of_mark(out, token, o, rank, stage1, stage2)
    end = encode(code, out, o)
    if place < o:
        grown = end - o
        for j in range(o - 1, place - 1, -1):
            out[j + grown] = out[j]
        encode(code, out, place)
    return end


@njit_no_refcounts
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
    # Add the last n-gram of the run, or the whole run if it is shorter than an n-gram.
    starts[count] = unit[(units - ngram) % MAX_NGRAM] if units >= ngram else token
    ends[count] = end
    return count + 1
