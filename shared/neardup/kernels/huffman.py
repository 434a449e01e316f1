"""Manku 2007 §3.2: blocks of 1024 bytes, a Huffman code for where neighbours first differ, the rest verbatim.

Two neighbours in a sorted run share their leading bits. What is kept of a key is the position of the first bit in
which it differs from the one before, and the bits behind that; the first key of a block is kept whole. Bits fill a
block from the most significant one of each word on, so that codes can be read by comparing.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from neardup.kernels.bits import leading_one, popcount

U = np.uint64
BLOCK_WORDS = 128
BLOCK_BITS = BLOCK_WORDS * 64
PEEK = 12
"""Codes up to this long are read from a table with 2^12 entries, longer ones bit by bit."""


@njit(nogil=True, cache=True)
def count_positions(keys: NDArray[np.uint64], start: int, stop: int, counts: NDArray[np.int64]) -> None:
    """Add up how often each position is the first in which keys[i] differs from keys[i - 1], for i in start..stop."""
    for i in range(max(start, 1), stop):
        counts[leading_one(keys[i] ^ keys[i - 1])] += 1


@njit(nogil=True, cache=True)
def code_lengths(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Huffman's algorithm on 64 symbols: bits of each code, 0 for symbols that do not occur."""
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
    """Codes in order of length, then symbol; and for every PEEK bits what code they begin with.

    A peek is symbol * 64 + length, or -1 when the code is longer.
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


@njit(nogil=True, cache=True)
def _get(words: NDArray[np.uint64], at: np.uint64) -> np.uint64:
    """The 64 bits from bit `at` on; the word after the last one must exist."""
    word = at >> U(6)
    shift = at & U(63)
    value: np.uint64 = (words[word] << shift) | ((words[word + U(1)] >> U(1)) >> (U(63) - shift))
    return value


@njit(nogil=True, cache=True)
def encode(
    keys: NDArray[np.uint64],
    start: int,
    stop: int,
    lengths: NDArray[np.int64],
    codes: NDArray[np.uint64],
    words: NDArray[np.uint64],
    last_keys: NDArray[np.uint64],
    counts: NDArray[np.uint16],
    block: int,
    at: int,
) -> tuple[int, int, int]:
    """Append keys[start:stop]; `at` is the bit reached in `block`. Returns (next key, block, at).

    The next key is short of stop when the blocks are used up: call again with more.
    """
    for i in range(start, stop):
        if i > 0:
            position = leading_one(keys[i] ^ keys[i - 1])
            needed = lengths[position] + position
        if i == 0 or at + needed > BLOCK_BITS:
            if i > 0:
                block += 1
            if block == counts.size:
                return i, block - 1, at
            words[block * BLOCK_WORDS] = keys[i]
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


@njit(nogil=True, cache=True)
def _next_key(
    words: NDArray[np.uint64],
    at: np.uint64,
    key: np.uint64,
    lengths: NDArray[np.int64],
    codes: NDArray[np.uint64],
    peeks: NDArray[np.int16],
) -> tuple[np.uint64, np.uint64]:
    window = _get(words, at)
    peek = peeks[window >> U(64 - PEEK)]
    if peek >= 0:
        position = U(peek >> 6)
        at += U(peek & 63)
    else:
        position = U(0)
        for symbol in range(64):
            length = lengths[symbol]
            if length > PEEK and window >> U(64 - length) == codes[symbol]:
                position = U(symbol)
                at += U(length)
                break
    rest = (_get(words, at) >> U(1)) >> (U(63) - position)
    flipped = (key >> position) ^ U(1)
    return at + position, (flipped << position) | rest


@njit(nogil=True, cache=True)
def decode_block(
    words: NDArray[np.uint64],
    block: int,
    count: int,
    lengths: NDArray[np.int64],
    codes: NDArray[np.uint64],
    peeks: NDArray[np.int16],
    out: NDArray[np.uint64],
) -> None:
    """Read all keys of a block."""
    key = words[block * BLOCK_WORDS]
    out[0] = key
    at = U(block) * U(BLOCK_BITS) + U(64)
    for i in range(1, count):
        at, key = _next_key(words, at, key, lengths, codes, peeks)
        out[i] = key


@njit(nogil=True, cache=True)
def probe_huffman(
    words: NDArray[np.uint64],
    last_keys: NDArray[np.uint64],
    counts: NDArray[np.uint16],
    directory: NDArray[np.uint32],
    skip: int,
    bits: int,
    lengths: NDArray[np.int64],
    codes: NDArray[np.uint64],
    peeks: NDArray[np.int16],
    queries: NDArray[np.uint64],
    limits: NDArray[np.uint64],
    chosen: NDArray[np.int64],
    start: int,
    mask: np.uint64,
    cap: int,
    found_query: NDArray[np.int64],
    found_key: NDArray[np.uint64],
    found: int,
) -> tuple[int, int, int]:
    """As probe_sorted: the directory leads to the first block whose last key is not smaller, which is decoded."""
    left = U(skip)
    right = U(64 - bits)
    capped = 0
    for step in range(start, chosen.size):
        number = chosen[step]
        query = queries[number]
        limit = limits[number]
        smallest = query & mask
        if skip:
            # Where the mask is shorter than what the slice shares, the shared bits are those of the query anyway.
            smallest |= query & ~(ALL >> left)
        largest = query | ~mask
        if found + cap + 1 > found_key.size:
            return step, found, capped
        low = int(directory[(smallest << left) >> right])
        while low < last_keys.size and last_keys[low] < smallest:
            low += 1
        before = found
        rounds = 1
        wanted = U(0)
        while rounds > 0:
            rounds -= 1
            block = low
            full = False
            while block < last_keys.size and not full:
                key = words[block * BLOCK_WORDS]
                at = U(block) * U(BLOCK_BITS) + U(64)
                remaining = int(counts[block])
                while key <= largest:
                    difference = key ^ query
                    distance = popcount(difference)
                    if (
                        difference & mask == U(0)
                        and distance <= limit
                        and (wanted == U(0) or distance == wanted - U(1))
                    ):
                        if found - before == cap:
                            full = True
                            break
                        found_query[found] = number
                        found_key[found] = key
                        found += 1
                    remaining -= 1
                    if remaining == 0:
                        break
                    at, key = _next_key(words, at, key, lengths, codes, peeks)
                if remaining > 0:
                    break
                block += 1
            if full and wanted == U(0):
                found = before
                capped += 1
                rounds = int(limit) + 1
            elif full:
                rounds = 0
            if rounds > 0:
                wanted += U(1)
    return chosen.size, found, capped


ALL = U(0xFFFFFFFFFFFFFFFF)
