import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.kernels.common import radix
from tests.kernels.conftest import INTERPRETED


@given(st.integers(0, 2 * radix.FEW), st.integers(0, 64), st.integers(0, 64), st.integers(0, 2**32))
def test_words_are_sorted_by_some_bits_and_equal_ones_stay_in_order(size: int, one: int, other: int, seed: int) -> None:
    low, high = sorted((one, other))
    words = (
        np.random.default_rng(seed).integers(0, 2**high, size, np.uint64, endpoint=False)
        if high < 64
        else (np.random.default_rng(seed).integers(0, 2**64, size, np.uint64))
    )
    expected = sorted(words.tolist(), key=lambda word: word >> low)
    radix.sort_words(words, np.empty_like(words), low, high)
    assert words.tolist() == expected


@pytest.mark.skipif(INTERPRETED, reason="too many words")
@pytest.mark.parametrize(("low", "high"), [(0, 64), (32, 64), (0, 34), (0, 12), (5, 16), (0, 22), (0, 23)])
def test_large_inputs_are_partitioned_first(low: int, high: int) -> None:
    rng = np.random.default_rng(1)
    words = (
        rng.integers(0, 2**high, 5 * radix.NEAR // 4, np.uint64)
        if high < 64
        else rng.integers(0, 2**64, 5 * radix.NEAR // 4, np.uint64)
    )
    # Some leading digits are frequent, most are rare.
    words[::2] &= np.uint64(2 ** (high - high // 4) - 1)
    expected = words[np.argsort(words >> np.uint64(low), kind="stable")]
    radix.sort_words(words, np.empty_like(words), low, high)
    assert (words == expected).all()
