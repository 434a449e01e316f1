"""Counting and finding bits in 64-bit words."""

import numpy as np
from numba import njit

U = np.uint64
_PAIRS = U(0x5555555555555555)
_NIBBLES = U(0x3333333333333333)
_BYTES = U(0x0F0F0F0F0F0F0F0F)
_ONES = U(0x0101010101010101)


@njit(nogil=True, cache=True)
def popcount(word: np.uint64) -> np.uint64:
    """Return the number of set bits. LLVM compiles this form to one instruction."""
    word = word - ((word >> U(1)) & _PAIRS)
    word = (word & _NIBBLES) + ((word >> U(2)) & _NIBBLES)
    word = (word + (word >> U(4))) & _BYTES
    return (word * _ONES) >> U(56)


@njit(nogil=True, cache=True)
def leading_one(word: np.uint64) -> np.int64:
    """Return the position of the most significant 1, counted from the right. The word must not be zero."""
    word |= word >> U(1)
    word |= word >> U(2)
    word |= word >> U(4)
    word |= word >> U(8)
    word |= word >> U(16)
    word |= word >> U(32)
    return np.int64(popcount(word)) - 1
