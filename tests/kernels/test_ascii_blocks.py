from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numba import njit
from numpy.typing import NDArray

from neardup.kernels.text import ascii_blocks
from tests.support import naive

_fold: Any = ascii_blocks.fold_block


@njit(nogil=True)
def fold_block(text: NDArray[np.uint8], at: int, out: NDArray[np.uint8]) -> tuple[np.uint64, np.uint64]:
    """Wrap the intrinsic, which can be called only from compiled code."""
    bits: tuple[np.uint64, np.uint64] = _fold(text, np.uint64(at), out, np.uint64(at))
    return bits


@given(st.integers(0, 2**64 - 1))
def test_trailing_zeros(word: int) -> None:
    ref = (word & -word).bit_length() - 1 if word else 64
    assert int(ascii_blocks.trailing_zeros(np.uint64(word))) == ref


@given(st.binary(min_size=64, max_size=64), st.integers(0, 9), st.booleans())
def test_a_block_is_folded_and_marked(block: bytes, shift: int, in_place: bool) -> None:
    text = np.frombuffer(bytes(shift) + block, dtype=np.uint8).copy()
    out = text if in_place else np.zeros(64 + shift, dtype=np.uint8)
    words, others = fold_block(text, shift, out)
    lower, word_bits, other_bits = naive.ascii_block(block)
    assert out[shift:].tobytes() == lower
    assert (int(words), int(others)) == (word_bits, other_bits)
