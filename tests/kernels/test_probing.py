"""Tests of probes of sorted keys: the answers equal those of the twin wherever cache lines begin."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numba import njit
from numpy.typing import NDArray

from neardup.index.lsm.key_directory import KeyDirectory
from neardup.index.plan.table import leading_mask
from neardup.kernels.index.arguments import Buffers, Queries
from neardup.kernels.index.cache_lines import LINE, is_one_within
from neardup.kernels.index.probing import probe_sorted
from tests.support import naive
from tests.support.fingerprints import fingerprints, words

ROOM = 10_000
MOST_COUNTED = 14
"""Largest number of keys per value that the directory counts exactly."""


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
    keys = words([0] * offset + sorted(set(values)))[offset:]
    asked = data.draw(st.lists(st.sampled_from(values), max_size=40)) if values else []
    queries = words([value ^ 1 << data.draw(st.integers(0, 63)) for value in asked])
    directory = KeyDirectory.empty(keys.size, 0, leading)
    directory.extend(keys, 0, keys.size)
    found_query, found_key = np.empty(ROOM, np.int64), np.empty(ROOM, np.uint64)
    lookups = Queries(queries, np.full(queries.size, limit, np.uint64), np.uint64(leading_mask(leading)), 1000)
    buffers = Buffers(found_query, found_key)
    reached, found, capped, scanned = probe_sorted(keys, directory.entries, lookups, 0, buffers, 0)
    assert (reached, capped) == (queries.size, 0)
    expected = {
        (number, key)
        for number, query in enumerate(queries.tolist())
        for _, key in naive.near(keys.tolist(), query, leading, limit)
    }
    assert set(zip(found_query[:found].tolist(), found_key[:found].tolist(), strict=True)) == expected
    assert found == len(expected)
    bucket = [key >> 64 - directory.bits for key in keys.tolist()]
    of_queries = [query >> 64 - directory.bits for query in queries.tolist()]
    in_ranges = sum(map(bucket.count, of_queries))
    # Where many keys have the same leading bits, the directory locates only groups of eight values.
    assert scanned == in_ranges or (scanned > in_ranges and max(map(bucket.count, bucket)) > MOST_COUNTED)


@given(fingerprints(60), st.data(), st.integers(0, 16), st.integers(0, 6))
def test_with_small_buffers_probing_resumes_where_it_stopped(
    values: list[int], data: st.DataObject, leading: int, more_room: int
) -> None:
    keys = words(sorted(set(values)))
    queries = words(data.draw(st.lists(st.sampled_from(values), max_size=80)) if values else [])
    directory = KeyDirectory.empty(keys.size, 0, leading)
    directory.extend(keys, 0, keys.size)
    cap = 4
    lookups = Queries(queries, np.full(queries.size, 3, np.uint64), np.uint64(leading_mask(leading)), cap)
    small, large = (np.empty(room, np.int64) for room in (cap + 1 + more_room, ROOM))

    def probe(start: int, found_query: NDArray[np.int64]) -> tuple[int, int, int, int]:
        found_key = np.empty(found_query.size, np.uint64)
        buffers = Buffers(found_query, found_key)
        reached, found, capped, scanned = probe_sorted(keys, directory.entries, lookups, start, buffers, 0)
        pairs.extend(zip(found_query[:found].tolist(), found_key[:found].tolist(), strict=True))
        return reached, found, capped, int(scanned)

    pairs: list[tuple[int, int]] = []
    _, _, capped, scanned = probe(0, large)
    expected, pairs = pairs, []
    reached = 0
    while reached < queries.size:
        reached, _, some_capped, some_scanned = probe(reached, small)
        capped -= some_capped
        scanned -= some_scanned
    assert (pairs, capped, scanned) == (expected, 0, 0)
