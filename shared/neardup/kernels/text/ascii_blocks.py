"""Tokenization of ASCII text in blocks of 64 bytes: conversion to lower case, and one bit per byte of a word.

A loop over bytes would mispredict a branch at nearly every end of a word. A block is therefore processed by vector
operations, written as LLVM IR for any machine: a block takes two AVX2 registers, or four of SSE2 or NEON.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import config, njit, types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from neardup.kernels.common.bits import popcount
from neardup.kernels.common.no_refcounts import njit_no_refcounts

BLOCK = 64
ONE = np.uint64(1)
LAST = np.uint64(BLOCK - 1)


class TokenBuffers(NamedTuple):
    """Buffers for the canonical bytes of tokens, and for the positions in them at which each token starts and ends."""

    canonical: NDArray[np.uint8]
    starts: NDArray[np.int32]
    ends: NDArray[np.int32]


@njit(nogil=True, cache=True)
def trailing_zeros(word: np.uint64) -> np.uint64:
    """Return the position of the least significant 1, or 64 if there is none. LLVM compiles this to one instruction."""
    return popcount(~word & (word - np.uint64(1)))


if getattr(config, "DISABLE_JIT", 0):

    def fold_block(
        text: NDArray[np.uint8], at: np.uint64, out: NDArray[np.uint8], to: np.uint64
    ) -> tuple[np.uint64, np.uint64]:
        """Do as the intrinsic below, byte by byte. For runs with the JIT off."""
        words, others = 0, 0
        for i in range(BLOCK):
            byte = int(text[int(at) + i])
            letter = 0 <= (byte | 0x20) - ord("a") < 26
            out[int(to) + i] = byte | 0x20 if letter else byte
            words |= (letter or ord("0") <= byte <= ord("9")) << i
            others |= (byte >= 0x80) << i
        return np.uint64(words), np.uint64(others)

else:

    @intrinsic
    def fold_block(typing_context: Any, text: Any, at: Any, out: Any, to: Any) -> Any:
        """Write text[at:at+64] in lower case to out[to:to+64]; return (bits of word characters, bits of non-ASCII).

        Bounds are not checked. `text` and `out` may be the same array, if `at` equals `to`.
        """

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            ir: Any = vars(cgutils)["ir"]  # llvmlite's, without importing it: kernels import numpy and numba only
            byte, word = ir.IntType(8), ir.IntType(64)
            block = ir.VectorType(byte, BLOCK)

            def all_of(value: int) -> Any:
                return ir.Constant(block, [ir.Constant(byte, value)] * BLOCK)

            def address(kind: Any, array: Any, index: Any) -> Any:
                data = context.make_array(kind)(context, builder, array).data
                return builder.bitcast(builder.gep(data, [index]), block.as_pointer())

            def between(characters: Any, first: str, last: str) -> Any:
                above = builder.sub(characters, all_of(ord(first)))
                return builder.icmp_unsigned("<=", above, all_of(ord(last) - ord(first)))

            characters = builder.load(address(text, arguments[0], arguments[1]), align=1)
            lower = builder.or_(characters, all_of(0x20))
            letters = between(lower, "a", "z")
            folded = builder.select(letters, lower, characters)
            builder.store(folded, address(out, arguments[2], arguments[3]), align=1)
            words = builder.or_(letters, between(characters, "0", "9"))
            others = builder.icmp_signed("<", characters, all_of(0))
            bits = [builder.bitcast(words, word), builder.bitcast(others, word)]
            return context.make_tuple(builder, signature.return_type, bits)

        return types.UniTuple(types.uint64, 2)(text, at, out, to), generate


@njit_no_refcounts
def _blocks(
    text: NDArray[np.uint8],
    at: np.uint64,
    stop: np.uint64,
    limit: np.uint64,
    buffers: TokenBuffers,
    o: np.uint64,
    ended: np.uint64,
    inside: np.uint64,
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    # Process whole blocks while `at` is before `stop`, up to the first byte that is not ASCII. Separators are copied to
    # `out` as well, so that a block is copied as a whole. Unsigned indices avoid the check for negative ones.
    out, starts, ends = buffers
    while at < stop and ended <= limit:
        word, other = fold_block(text, at, out, o)
        before = word << ONE | inside
        start_bits = word & ~before
        end_bits = before & ~word
        inside = word >> LAST
        length = trailing_zeros(other)
        if length <= LAST:
            here = (ONE << length) - ONE
            start_bits &= here
            end_bits &= here
            inside = before >> length & ONE
        start = ended + (before & ONE)
        end = ended
        ended += popcount(end_bits)
        while start_bits | end_bits:
            # Four tokens at a time, as few blocks have fewer. Surplus entries are overwritten later.
            for _ in range(4):
                starts[start] = np.int32(o + trailing_zeros(start_bits))
                ends[end] = np.int32(o + trailing_zeros(end_bits))
                start_bits &= start_bits - ONE
                end_bits &= end_bits - ONE
                start += ONE
                end += ONE
        at += length
        o += length
        if length <= LAST:
            break
    return at, o, ended, inside


@njit_no_refcounts
def ascii_run(
    text: NDArray[np.uint8],
    first: int,
    limit: int,
    buffers: TokenBuffers,
    written: int,
    counted: int,
    inside_word: bool,
) -> tuple[int, int, int, bool]:
    """Cut `text` from `first` on up to the next byte that is not ASCII, or until more than `limit` tokens have ended.

    The buffers hold `written` canonical bytes and `counted` tokens already. `starts[counted]` must be set if the run
    begins inside a word, and is set if it ends inside one. The buffers must have room for 64 bytes and 40 tokens more
    than the run has. Returns the place reached in the text, the numbers of bytes and tokens in the buffers, and whether
    the run ended inside a word.
    """
    out = buffers.canonical
    most = np.uint64(limit)
    size = np.uint64(text.size)
    at = np.uint64(first)
    o = np.uint64(written)
    ended = np.uint64(counted)
    inside = np.uint64(inside_word)
    if size >= np.uint64(BLOCK):
        at, o, ended, inside = _blocks(text, at, size - LAST, most, buffers, o, ended, inside)
    left = size - at
    if ONE <= left <= LAST and text[at] < 0x80:
        # Reading past the end of the text is not allowed: copy the rest to its place in `out` and pad it there.
        for i in range(left):
            out[o + np.uint64(i)] = text[at + np.uint64(i)]
        for i in range(left, BLOCK):
            out[o + np.uint64(i)] = 0
        end, _, ended, inside = _blocks(out, o, o + ONE, most, buffers, o, ended, inside)
        at += min(end - o, left)
        o = end
    return np.int64(at), np.int64(o), np.int64(ended), inside != 0
