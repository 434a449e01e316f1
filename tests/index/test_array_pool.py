"""Tests of the array pool: memory is reused only when no array refers to it, and unused memory is released."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from neardup.index.lsm.array_pool import LEAST_BYTES, ArrayPool
from neardup.index.plan.table import Table
from neardup.index.slices.slice import Slice, SliceSettings

WORDS = LEAST_BYTES // 8


@given(st.lists(st.tuples(st.integers(1, 4 * WORDS), st.integers(0, 5), st.booleans()), max_size=25))
def test_no_two_arrays_in_use_share_memory(steps: list[tuple[int, int, bool]]) -> None:
    """Keep some arrays whole, and only a part of others."""
    pool, kept = ArrayPool(), []
    for number, (size, dropped, only_a_part) in enumerate(steps):
        made = pool.array(size, np.uint64)
        assert made.size == size
        made[:] = number
        kept.append((number, made[size // 2 :] if only_a_part else made))
        del made, kept[:dropped]
        if only_a_part:
            pool.release(8 * size)
        assert all((array == number).all() for number, array in kept)


def test_a_dropped_array_makes_room_for_a_larger_one() -> None:
    pool = ArrayPool()
    first = pool.array(WORDS + 1, np.uint64)
    part, place = first[5:], first.ctypes.data
    del first
    assert pool.nbytes == 0, "a part is still in use"
    del part
    assert pool.nbytes == 8 * (WORDS + 1)
    assert pool.array(2 * WORDS, np.uint64).ctypes.data == place


def test_unused_memory_is_released_in_steps() -> None:
    pool = ArrayPool()
    pool.array(4 * WORDS, np.uint64)[:] = 1
    seen = []
    while pool.nbytes:
        pool.release(LEAST_BYTES)
        seen.append(pool.nbytes)
    assert seen == [3 * LEAST_BYTES, 2 * LEAST_BYTES, LEAST_BYTES, 0]


def test_a_slice_does_not_accumulate_spare_memory() -> None:
    """Spare memory is at most half a run beside the runs and a merge. Without release the total would be 3.5 runs."""
    rng = np.random.default_rng(1)
    kept = Slice(Table.plain(24), settings=SliceSettings(tail=1 << 12))
    most = 0.0
    for number in range(500):
        kept.probe_and_insert(rng.integers(0, 2**64, 4096, np.uint64), 3)
        if number > 50:
            most = max(most, kept.nbytes / len(kept))
    assert most < 2.5 * sum(run.nbytes for run in kept.runs) / len(kept)
