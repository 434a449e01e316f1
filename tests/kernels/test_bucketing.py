"""Keys of buckets, mixed and back."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from neardup.kernels.index.bucketing import mix, unmix
from tests.support import naive


@given(st.lists(st.integers(0, 2**64 - 1), max_size=30))
def test_mixing_is_xxh64s_last_step_and_can_be_undone(keys: list[int]) -> None:
    words = np.array(keys, np.uint64)
    mixed, back = np.empty_like(words), np.empty_like(words)
    mix(words, mixed)
    unmix(mixed, back)
    assert mixed.tolist() == [naive.mixed(key) for key in keys]
    assert back.tolist() == [naive.unmixed(each) for each in mixed.tolist()] == keys
