"""Tests of partial sorting and of the bitmap filter for fingerprints against sorting and lookups in Python."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from neardup.index.plan.table import moves
from neardup.kernels.index.bitmap_filter import filter_by_bitmap, group_by_bits
from tests.support.fingerprints import fingerprints, words
from tests.support.naive import permuted

ORDERS = st.permutations(range(64))


@given(fingerprints(400), st.integers(0, 63), st.integers(1, 12))
def test_fingerprints_are_grouped_by_some_bits(values: list[int], first: int, bits: int) -> None:
    out = np.empty(len(values), np.uint64)
    group_by_bits(words(values), first, bits, out)
    assert out.tolist() == sorted(values, key=lambda value: (value << first & 2**64 - 1) >> (64 - bits))


@given(fingerprints(400), fingerprints(), ORDERS, st.integers(6, 12))
def test_fingerprints_pass_if_their_leading_permuted_bits_occur(
    values: list[int], occurring: list[int], order: list[int], bits: int
) -> None:
    leading = {permuted(value, order) >> (64 - bits) for value in occurring}
    bitmap = [sum(1 << bit for bit in range(64) if 64 * word + bit in leading) for word in range((1 << bits) // 64)]
    passed = np.empty(len(values) + 1, np.uint64)
    count = filter_by_bitmap(words(values), *moves(order), bits, words(bitmap), passed)
    assert passed[:count].tolist() == [value for value in values if permuted(value, order) >> (64 - bits) in leading]
