"""Huffman coding of sorted keys in blocks of 1024 bytes (Manku 2007 §3.2).

Two neighbours in a sorted run share their leading bits. A key is stored as the position of the first bit in which it
differs from the previous key, as a Huffman code, and the bits behind that position. The first key of a block is stored
whole. Each word is filled from its most significant bit on, so that codes can be decoded by comparison.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from neardup.kernels.common.bits import leading_one
from neardup.kernels.common.no_refcounts import njit_no_refcounts
from neardup.kernels.index.arguments import Buffers, Queries
from neardup.kernels.index.locating import Directory, bucket_of, first_at_least, range_of
from neardup.kernels.index.probing import narrowed, scan_range

U = np.uint64
ALL = U(0xFFFFFFFFFFFFFFFF)
BLOCK_WORDS = 128
BLOCK_BITS = BLOCK_WORDS * 64
PEEK = 12
"""Maximum length of a code that is decoded by a table of 2^12 entries. Longer codes are decoded by comparison."""


class Code(NamedTuple):
    """A canonical Huffman code: the length and the bits of each symbol's code, and the table of `canonical_codes`."""

    lengths: NDArray[np.int64]
    codes: NDArray[np.uint64]
    peeks: NDArray[np.int16]


class Blocks(NamedTuple):
    """Encoded blocks, with the last key and the number of keys of each."""

    words: NDArray[np.uint64]
    last_keys: NDArray[np.uint64]
    counts: NDArray[np.uint16]


@njit(nogil=True, cache=True)
def count_positions(keys: NDArray[np.uint64], start: int, stop: int, counts: NDArray[np.int64]) -> None:
    """Count the positions of the first bit in which keys[i] differs from keys[i - 1], for i from start to stop - 1."""
    for i in range(max(start, 1), stop):
        counts[leading_one(keys[i] ^ keys[i - 1])] += 1


@njit(nogil=True, cache=True)
def code_lengths(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the length of each of 64 codes by Huffman's algorithm, 0 for symbols that do not occur."""
    weight = np.zeros(127, np.int64)
    parent = np.full(127, -1, np.int64)
    alive = np.zeros(127, np.bool_)
    weight[:64] = counts
    remaining = 0
    for symbol in range(64):
        alive[symbol] = counts[symbol] > 0
        remaining += counts[symbol] > 0
    node = 64
    while remaining > 1:
        low = -1
        next_low = -1
        for each in range(node):
            if not alive[each]:
                continue
            if low < 0 or weight[each] < weight[low]:
                next_low = low
                low = each
            elif next_low < 0 or weight[each] < weight[next_low]:
                next_low = each
        alive[low] = False
        alive[next_low] = False
        parent[low] = node
        parent[next_low] = node
        weight[node] = weight[low] + weight[next_low]
        alive[node] = True
        node += 1
        remaining -= 1
    lengths = np.zeros(64, np.int64)
    for symbol in range(64):
        if counts[symbol] == 0:
            continue
        length = 0
        each = symbol
        while parent[each] >= 0:
            each = parent[each]
            length += 1
        lengths[symbol] = max(length, 1)
    return lengths


@njit(nogil=True, cache=True)
def canonical_codes(lengths: NDArray[np.int64]) -> tuple[NDArray[np.uint64], NDArray[np.int16]]:
    """Return the codes, assigned in order of length and symbol, and the code that each word of PEEK bits begins with.

    The latter is symbol * 64 + length, or -1 if the code is longer than PEEK bits.
    """
    codes = np.zeros(64, np.uint64)
    peeks = np.full(1 << PEEK, -1, np.int16)
    code = U(0)
    for length in range(1, 64):
        code <<= U(1)
        for symbol in range(64):
            if lengths[symbol] != length:
                continue
            codes[symbol] = code
            if length <= PEEK:
                first = int(code) << (PEEK - length)
                for peek in range(first, first + (1 << (PEEK - length))):
                    peeks[peek] = symbol * 64 + length
            code += U(1)
    return codes, peeks


@njit(nogil=True, cache=True)
def _put(words: NDArray[np.uint64], base: int, at: int, value: np.uint64, width: np.int64) -> None:
    if width == 0:
        return
    word = base + (at >> 6)
    room = 64 - (at & 63)
    if width <= room:
        words[word] |= value << U(room - width)
    else:
        words[word] |= value >> U(width - room)
        words[word + 1] |= value << U(64 - (width - room))


@njit_no_refcounts
def _get(words: NDArray[np.uint64], at: np.uint64) -> np.uint64:
    """Return the 64 bits from bit `at` on. The word after that of bit `at` must exist."""
    word = at >> U(6)
    shift = at & U(63)
    value: np.uint64 = (words[word] << shift) | ((words[word + U(1)] >> U(1)) >> (U(63) - shift))
    return value


@njit(nogil=True, cache=True)
def encode(
    keys: NDArray[np.uint64],
    start: int,
    stop: int,
    code: Code,
    blocks: Blocks,
    block: int,
    at: int,
) -> tuple[int, int, int]:
    """Append keys[start:stop] to the blocks, from bit `at` of `block` on. Blocks are cleared when they begin.

    Returns the next key, the block and the bit reached. The next key is before `stop` if the blocks are full.
    """
    lengths, codes, _ = code
    words, last_keys, counts = blocks
    for i in range(start, stop):
        if i > 0:
            position = leading_one(keys[i] ^ keys[i - 1])
            needed = lengths[position] + position
        if i == 0 or at + needed > BLOCK_BITS:
            if i > 0:
                block += 1
            if block == counts.size:
                return i, block - 1, at
            words[block * BLOCK_WORDS : (block + 1) * BLOCK_WORDS] = U(0)
            words[block * BLOCK_WORDS] = keys[i]
            counts[block] = 0
            at = 64
        else:
            base = block * BLOCK_WORDS
            _put(words, base, at, codes[position], lengths[position])
            at += int(lengths[position])
            if position:
                _put(words, base, at, keys[i] & ((U(1) << U(position)) - U(1)), position)
            at += int(position)
        counts[block] += 1
        last_keys[block] = keys[i]
    return stop, block, at


@njit_no_refcounts
def _next_key(
    words: NDArray[np.uint64],
    at: np.uint64,
    key: np.uint64,
    code: Code,
) -> tuple[np.uint64, np.uint64]:
    lengths, codes, peeks = code
    window = _get(words, at)
    peek = peeks[window >> U(64 - PEEK)]
    length = U(peek & 63)
    position = U(peek >> 6)
    if peek < 0:
        for symbol in range(64):
            if lengths[symbol] > PEEK and window >> U(64 - lengths[symbol]) == codes[symbol]:
                position = U(symbol)
                length = U(lengths[symbol])
                break
    # The code and the bits behind it are nearly always in one window.
    rest = window << length if length + position <= U(64) else _get(words, at + length)
    rest = (rest >> U(1)) >> (U(63) - position)
    flipped = (key >> position) ^ U(1)
    return at + length + position, (flipped << position) | rest


@njit(nogil=True, cache=True)
def decode_blocks(blocks: Blocks, first: int, last: int, code: Code, out: NDArray[np.uint64]) -> int:
    """Decode all keys of the blocks `first` to `last` into `out` and return their number."""
    words, _, counts = blocks
    written = U(0)
    for block in range(first, last + 1):
        key = words[block * BLOCK_WORDS]
        out[written] = key
        written += U(1)
        at = U(block) * U(BLOCK_BITS) + U(64)
        for _ in range(1, counts[block]):
            at, key = _next_key(words, at, key, code)
            out[written] = key
            written += U(1)
    return int(written)


@njit(nogil=True, cache=True)
def probe_huffman(
    blocks: Blocks,
    code: Code,
    directory: Directory,
    lookups: Queries,
    numbers: NDArray[np.int64],
    start: int,
    buffers: Buffers,
    found: int,
) -> tuple[int, int, int, np.int64]:
    """Do as `probe_sorted` for queries in rising order, which are reported under their `numbers`.

    `directory` leads to the last keys of the blocks. A query that needs the same block as the one before continues with
    the keys decoded so far, and decodes no more than it needs.
    """
    words, last_keys, counts = blocks
    entries, skip, bits = directory
    queries, limits, mask, cap = lookups
    found_query, found_key = buffers
    into = Buffers(found_query, found_key)
    left = U(skip)
    drop = U(63 - bits)
    # All keys of the slice and the query share the first `skip` bits, so the mask may include them.
    mask |= ~(ALL >> left)
    group = Queries(queries, limits, mask, cap)
    keys = np.empty(BLOCK_BITS, np.uint64)
    held = 0
    held_first = np.int64(-1)
    block = np.int64(-1)
    block_end = 0
    at = key = U(0)
    capped = 0
    scanned = U(0)
    for step in range(start, queries.size):
        query = queries[step]
        smallest = query & mask
        largest = query | ~mask
        low, high = range_of(entries, bucket_of(smallest, left, drop))
        # The first block whose last key is not before the range of the query.
        first = np.int64(first_at_least(last_keys, low, high, smallest))
        if first == last_keys.size or words[first * BLOCK_WORDS] > largest:
            continue
        if found + cap + 1 > found_key.size:
            return step, found, capped, np.int64(scanned)
        if first != held_first:
            held_first = first
            block = first - 1
            held = 0
            block_end = 0
        while held == 0 or key <= largest:
            if held < block_end:
                at, key = _next_key(words, at, key, code)
            elif block + 1 < last_keys.size:
                block += 1
                key = words[block * BLOCK_WORDS]
                at = U(block) * U(BLOCK_BITS) + U(64)
                block_end += int(counts[block])
                if block_end > keys.size:
                    keys = np.append(keys, np.empty(block_end, np.uint64))
            else:
                break
            keys[held] = key
            held += 1
        low, high = narrowed(keys, U(0), U(held), query, mask)
        found, more = scan_range(keys, low, high, group, step, numbers[step], into, found)
        capped += more
        scanned += high - low
    return queries.size, found, capped, np.int64(scanned)
