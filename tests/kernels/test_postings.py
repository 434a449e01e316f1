from collections import Counter
from itertools import accumulate, pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from neardup.kernels import postings
from tests import naive

ROW_BITS = 6
# Keys that look alike by 40 bits are one key to the kernels; these do not.
KEYS = st.integers(0, 30).map(lambda number: naive.xxh64(bytes([number])))
ROWS = st.lists(st.sets(KEYS, max_size=8), min_size=1, max_size=20)


def partitions_of(rows: list[set[int]]) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """All postings, sorted, and where each partition starts."""
    keys = np.array([key for some in rows for key in sorted(some)], np.uint64)
    counts = postings.count_partitions(keys)
    assert counts.tolist() == [sum(key >> 56 == number for key in keys.tolist()) for number in range(256)]
    starts = np.array(list(accumulate(counts.tolist(), initial=0)), np.int64)
    words = np.empty(keys.size, np.uint64)
    sizes = np.array([len(some) for some in rows], np.int64)
    postings.divide(keys, sizes, np.arange(len(rows)), starts[:-1].copy(), words)
    for start, end in pairwise(starts):
        words[start:end].sort()
    return words, starts


@given(ROWS)
def test_a_posting_has_32_bits_of_its_key_and_its_row(rows: list[set[int]]) -> None:
    words, starts = partitions_of(rows)
    expected = sorted((key >> 24, row) for row, some in enumerate(rows) for key in some)
    partition = np.repeat(np.arange(256), np.diff(starts)).tolist()
    found = [(p << 32 | word >> 32, word & 0xFFFFFFFF) for p, word in zip(partition, words.tolist(), strict=True)]
    assert found == expected


@given(ROWS, st.lists(KEYS | st.integers(0, 2**64 - 1), max_size=10))
def test_rows_of_keys_are_found(rows: list[set[int]], asked: list[int]) -> None:
    places, found = postings.find(*partitions_of(rows), np.array(asked, np.uint64))
    expected = [(place, row) for place, key in enumerate(asked) for row, some in enumerate(rows) if key in some]
    assert list(zip(places.tolist(), found.tolist(), strict=True)) == expected


@given(ROWS, st.integers(0, 20), st.integers(1, 12), st.integers(0, 100), st.data())
def test_pairs_of_rows_come_from_each_key(
    rows: list[set[int]], first_new: int, common: int, room: int, data: st.DataObject
) -> None:
    kept = data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    words, starts = partitions_of(rows)
    reach = np.where(kept, 64, 0).astype(np.uint8)
    out = np.empty(common + room, np.uint64)
    ignored = np.zeros(2, np.int64)
    found: Counter[tuple[int, int]] = Counter()
    for start, end in pairwise(starts):
        part, at, done = words[start:end], 0, 0
        while at < part.size:
            at, done, filled = postings.expand(part, at, done, reach, first_new, common, ROW_BITS, out, 0, ignored)
            found.update((pair >> ROW_BITS, pair & 63) for pair in out[:filled].tolist())
    assert found == naive.pairs_sharing(rows, kept, first_new, common)
    assert tuple(ignored.tolist()) == naive.common_keys(rows, kept, common)


@given(ROWS, st.integers(1, 12), st.lists(st.integers(0, 4), min_size=20, max_size=20))
def test_a_row_takes_part_in_keys_that_are_within_its_reach(
    rows: list[set[int]], common: int, reaches: list[int]
) -> None:
    words, starts = partitions_of(rows)
    reach = np.array(reaches[: len(rows)], np.uint8)
    out = np.empty(10_000, np.uint64)
    counts = np.zeros((len(rows), common.bit_length() + 1), np.uint16)
    filled = 0
    for start, end in pairwise(starts):
        _, _, filled = postings.expand(
            words[start:end], 0, 0, reach, 0, common, ROW_BITS, out, filled, np.zeros(2, np.int64)
        )
        postings.count_rarities(words[start:end], reach, common, counts)
    sizes = {key: len(each) for key, each in naive.rows_by_key(rows, [each > 0 for each in reach]).items()}
    within = [
        {key for key in some if sizes.get(key, 0) <= common and sizes.get(key, 0).bit_length() <= reach[row]}
        for row, some in enumerate(rows)
    ]
    found = Counter((pair >> ROW_BITS, pair & 63) for pair in out[:filled].tolist())
    assert found == naive.pairs_sharing(within, [each > 0 for each in reach], 0, len(rows))
    for row, some in enumerate(rows):
        rarities = [sizes[key].bit_length() for key in some if key in sizes and sizes[key] <= common]
        expected = [rarities.count(each) if reach[row] else 0 for each in range(counts.shape[1])]
        assert counts[row].tolist() == expected


COUNTED = st.dictionaries(st.integers(0, 40), st.integers(1, 9), max_size=30)


@given(COUNTED, COUNTED)
def test_runs_are_counted_and_merged(one: dict[int, int], other: dict[int, int]) -> None:
    runs = []
    for counts in (one, other):
        pairs = np.array(sorted(Counter(counts).elements()), np.uint64)
        kept = np.empty(pairs.size, np.uint32)
        size = postings.count_equal(pairs, kept)
        runs.append((pairs[:size], kept[:size]))
        assert dict(zip(pairs[:size].tolist(), kept[:size].tolist(), strict=True)) == counts
    merged, added = postings.merge_counted(*runs[0], *runs[1])
    expected = sorted((Counter(one) + Counter(other)).items())
    assert list(zip(merged.tolist(), added.tolist(), strict=True)) == expected
