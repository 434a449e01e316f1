"""Tests of the mixing of bucket keys and of its inverse."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from neardup.kernels.index.bucketing import mix, unmix
from tests.support import naive


@given(st.lists(st.integers(0, 2**64 - 1), max_size=30))
def test_mixing_is_the_last_step_of_xxh64_and_is_invertible(keys: list[int]) -> None:
    words = np.array(keys, np.uint64)
    mixed, back = np.empty_like(words), np.empty_like(words)
    mix(words, mixed)
    unmix(mixed, back)
    assert mixed.tolist() == [naive.mixed(key) for key in keys]
    assert back.tolist() == [naive.unmixed(each) for each in mixed.tolist()] == keys
