"""Sorted keys probed: whole cache lines are compared, and wherever they begin, the answers are the twin's."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numba import njit
from numpy.typing import NDArray

from neardup.kernels.lines import LINE, is_one_within
from neardup.kernels.probing import probe_sorted
from neardup.key_directory import KeyDirectory
from neardup.table import leading_mask
from tests import naive
from tests.fingerprints import fingerprints, words

ROOM = 10_000


@njit(nogil=True)
def _is_one_within(
    keys: NDArray[np.uint64], one: np.uint64, other: np.uint64, query: np.uint64, limit: np.uint64
) -> bool:
    return is_one_within(keys, one, other, query, limit)


@given(st.data(), st.integers(0, 64))
def test_two_lines_at_once(data: st.DataObject, limit: int) -> None:
    keys = data.draw(st.lists(st.integers(0, 2**64 - 1), min_size=LINE, max_size=4 * LINE))
    query = data.draw(st.one_of(st.sampled_from(keys), st.integers(0, 2**64 - 1)))
    one, other = (data.draw(st.integers(0, len(keys) - LINE)) for _ in range(2))
    lines = keys[one : one + LINE] + keys[other : other + LINE]
    found = _is_one_within(words(keys), np.uint64(one), np.uint64(other), np.uint64(query), np.uint64(limit))
    assert found == any(naive.distance(key, query) <= limit for key in lines)


@given(fingerprints(120), st.data(), st.integers(0, LINE - 1), st.integers(0, 16), st.integers(0, 3))
def test_lines_may_begin_anywhere(
    values: list[int], data: st.DataObject, offset: int, leading: int, limit: int
) -> None:
    keys = words(sorted(set(values)))
    asked = data.draw(st.lists(st.sampled_from(values), max_size=40)) if values else []
    queries = words([value ^ 1 << data.draw(st.integers(0, 63)) for value in asked])
    directory = KeyDirectory.empty(keys.size, 0, leading)
    directory.extend(keys, 0, keys.size)
    found_query, found_key = np.empty(ROOM, np.int64), np.empty(ROOM, np.uint64)
    reached, found, capped, _ = probe_sorted(
        keys, offset, directory.words, 0, directory.bits, queries, np.full(queries.size, limit, np.uint64), 0,
        np.uint64(leading_mask(leading)), 1000, found_query, found_key, 0,
    )  # fmt: skip
    assert (reached, capped) == (queries.size, 0)
    expected = {
        (number, key)
        for number, query in enumerate(queries.tolist())
        for _, key in naive.near(keys.tolist(), query, leading, limit)
    }
    assert set(zip(found_query[:found].tolist(), found_key[:found].tolist(), strict=True)) == expected
    assert found == len(expected)
