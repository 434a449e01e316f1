"""Tests of stepwise merging, with its directory and its filter, against sorting and searching in Python."""

from bisect import bisect_left
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from neardup.kernels.common.merging import merge_step
from neardup.kernels.index.locating import extend_directory, range_of
from neardup.kernels.index.probing import extend_filter
from tests.support.fingerprints import EDGES, fingerprints, words

PAIRS = st.lists(st.tuples(st.sampled_from(EDGES), st.integers(0, 30)), unique=True, max_size=80)


@given(fingerprints(), st.data(), st.integers(1, 30))
def test_keys_merged_in_steps_are_the_sorted_keys(values: list[int], data: st.DataObject, budget: int) -> None:
    older, newer = halves(sorted(set(values)), data)
    out = np.empty(len(older) + len(newer), np.uint64)
    done = (0, 0)
    while sum(done) < out.size:
        before = sum(done)
        done = merge_step(words(older), None, words(newer), None, done, out, None, budget)
        assert sum(done) == min(out.size, before + budget)
        assert out[: sum(done)].tolist() == sorted(older + newer)[: sum(done)]


@given(PAIRS, st.data(), st.integers(1, 30))
def test_pairs_merged_in_steps_are_the_sorted_pairs(
    pairs: list[tuple[int, int]], data: st.DataObject, budget: int
) -> None:
    older, newer = halves(sorted(pairs), data)
    keys, values = np.empty(len(pairs), np.uint64), np.empty(len(pairs), np.uint64)
    done = (0, 0)
    while sum(done) < len(pairs):
        done = merge_step(*columns(older), *columns(newer), done, keys, values, budget)
    assert list(zip(keys.tolist(), values.tolist(), strict=True)) == sorted(pairs)


@given(fingerprints(500), st.integers(0, 5), st.integers(0, 13), st.integers(1, 600))
def test_a_directory_filled_in_steps_locates_the_keys(values: list[int], skip: int, bits: int, step: int) -> None:
    keys = sorted({value >> skip for value in values})
    directory = np.empty(max(1, (1 << bits) // 8) + 1, np.uint64)
    filled = 0
    for start in range(0, len(keys), step):
        filled = extend_directory(words(keys), start, min(len(keys), start + step), skip, bits, directory, filled)
    assert filled == directory.size
    leading = [key >> (64 - skip - bits) for key in keys]
    for bucket in {*leading, *(each ^ 1 for each in leading if bits), 0, (1 << bits) - 1}:
        eight = [leading.count(each) for each in range(bucket & ~7, (bucket & ~7) + 8)]
        first, past = (bucket & ~7, (bucket & ~7) + 8) if max(eight) >= 15 else (bucket, bucket + 1)
        ends = range_of(directory, np.uint64(bucket))
        assert tuple(map(int, ends)) == (bisect_left(leading, first), bisect_left(leading, past))


@given(fingerprints(500), st.integers(0, 5), st.integers(6, 10), st.integers(1, 600))
def test_a_filter_filled_in_steps_has_the_leading_bits_of_all_keys(
    values: list[int], skip: int, bits: int, step: int
) -> None:
    keys = sorted({value >> skip for value in values})
    bitmap = np.full((1 << bits) // 64, 2**64 - 1, np.uint64)
    filled = 0
    for start in range(0, len(keys), step):
        filled = extend_filter(words(keys), start, min(len(keys), start + step), skip, bits, bitmap, filled)
    leading = {key >> (64 - skip - bits) for key in keys}
    assert {j for j in range(1 << bits) if int(bitmap[j // 64]) >> j % 64 & 1} == leading


def halves(entries: list[Any], data: st.DataObject) -> tuple[list[Any], list[Any]]:
    sides = data.draw(st.lists(st.booleans(), min_size=len(entries), max_size=len(entries)))
    older = [entry for entry, side in zip(entries, sides, strict=True) if side]
    return older, [entry for entry, side in zip(entries, sides, strict=True) if not side]


def columns(pairs: list[tuple[int, int]]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    return words([key for key, _ in pairs]), words([value for _, value in pairs])
