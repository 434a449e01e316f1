from collections import Counter
from itertools import accumulate, combinations, pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from neardup.kernels.offline import postings
from tests.support import naive

ROW_BITS = 6
# The kernels treat keys with equal leading 40 bits as one key; these keys differ in these bits.
KEYS = st.integers(0, 30).map(lambda number: naive.xxh64(bytes([number])))
ROWS = st.lists(st.sets(KEYS, max_size=8), min_size=1, max_size=20)


def partitions_of(rows: list[set[int]]) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Return all postings, sorted, and the start of each partition."""
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
def test_a_posting_has_40_bits_of_its_key_and_its_row(rows: list[set[int]]) -> None:
    words, starts = partitions_of(rows)
    expected = sorted((key >> 32 << 8 | key & 0xFF, row) for row, some in enumerate(rows) for key in some)
    partition = np.repeat(np.arange(256), np.diff(starts)).tolist()
    found = [(p << 32 | word >> 32, word & 0xFFFFFFFF) for p, word in zip(partition, words.tolist(), strict=True)]
    assert found == expected


def rows_by_reach(reach: NDArray[np.uint8]) -> postings.TakingPart:
    """Return a selection of rows by reach, without a modulus for their keys."""
    zeros = np.zeros(reach.size, np.uint8)
    return postings.TakingPart(reach, zeros, zeros.astype(np.uint16)[:, None], reach[:, None])


@given(ROWS, st.lists(KEYS | st.integers(0, 2**64 - 1), max_size=10))
def test_rows_of_keys_are_found(rows: list[set[int]], asked: list[int]) -> None:
    places, found = postings.find(*partitions_of(rows), np.array(asked, np.uint64))
    expected = [(place, row) for place, key in enumerate(asked) for row, some in enumerate(rows) if key in some]
    assert list(zip(places.tolist(), found.tolist(), strict=True)) == expected


@given(ROWS, st.integers(0, 20), st.integers(1, 12), st.integers(0, 100), st.data())
def test_pairs_of_rows_are_generated_for_each_key(
    rows: list[set[int]], first_new: int, common: int, room: int, data: st.DataObject
) -> None:
    kept = data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    words, starts = partitions_of(rows)
    who = rows_by_reach(np.where(kept, 64, 0).astype(np.uint8))
    out = np.empty(common + room, np.uint64)
    ignored = np.zeros(2, np.int64)
    rules = postings.PairRules(first_new, common, ROW_BITS)
    found: Counter[tuple[int, int]] = Counter()
    for start, end in pairwise(starts):
        part, at, done = words[start:end], 0, 0
        while at < part.size:
            at, done, filled = postings.expand(part, at, done, who, rules, out, 0, ignored)
            found.update((pair >> ROW_BITS, pair & 63) for pair in out[:filled].tolist())
    assert found == naive.pairs_sharing(rows, kept, first_new, common)
    assert tuple(ignored.tolist()) == naive.common_keys(rows, kept, common)


@given(ROWS, st.integers(1, 12), st.lists(st.integers(0, 4), min_size=20, max_size=20))
def test_a_row_forms_pairs_only_for_keys_within_its_reach(
    rows: list[set[int]], common: int, reaches: list[int]
) -> None:
    words, starts = partitions_of(rows)
    reach = np.array(reaches[: len(rows)], np.uint8)
    found = expanded(words, starts, rows_by_reach(reach), common)
    sizes = key_sizes(rows, reach)
    within = [
        {key for key in some if sizes.get(key, 0) <= common and sizes.get(key, 0).bit_length() <= reach[row]}
        for row, some in enumerate(rows)
    ]
    assert found == naive.pairs_sharing(within, [each > 0 for each in reach], 0, len(rows))


def expanded(
    words: NDArray[np.uint64], starts: NDArray[np.int64], who: postings.TakingPart, common: int
) -> Counter[tuple[int, int]]:
    out, filled = np.empty(10_000, np.uint64), 0
    for start, end in pairwise(starts):
        rules = postings.PairRules(0, common, ROW_BITS)
        _, _, filled = postings.expand(words[start:end], 0, 0, who, rules, out, filled, np.zeros(2, np.int64))
    return Counter((pair >> ROW_BITS, pair & 63) for pair in out[:filled].tolist())


def key_sizes(rows: list[set[int]], reach: NDArray[np.uint8]) -> dict[int, int]:
    return {key: len(each) for key, each in naive.rows_by_key(rows, [each > 0 for each in reach]).items()}


@given(ROWS, st.integers(1, 12), st.data())
def test_keys_are_counted_by_rarity_and_modulus(rows: list[set[int]], common: int, data: st.DataObject) -> None:
    reach, exponents = (
        np.array(data.draw(st.lists(st.integers(0, 4), min_size=len(rows), max_size=len(rows))), np.uint8)
        for _ in range(2)
    )
    words, starts = partitions_of(rows)
    counts = np.zeros((len(rows), 3, common.bit_length() + 1), np.uint8)
    for start, end in pairwise(starts):
        postings.count_rarities(words[start:end], reach, exponents, common, counts)
    sizes = key_sizes(rows, reach)
    for row, some in enumerate(rows):
        counted = [key for key in some if reach[row] and sizes[key] <= common]
        for level in range(3):
            here = [key for key in counted if level == 0 or key % (1 << int(exponents[row]) + level) == 0]
            rarities = [sizes[key].bit_length() for key in here]
            assert counts[row, level].tolist() == [rarities.count(each) for each in range(counts.shape[2])]


@given(ROWS, st.integers(1, 12), st.data())
def test_the_smaller_of_two_rows_determines_their_common_keys(
    rows: list[set[int]], common: int, data: st.DataObject
) -> None:
    levels = 3

    def drawn(most: int, width: int) -> list[list[int]]:
        row = st.lists(st.integers(0, most), min_size=width, max_size=width)
        return data.draw(st.lists(row, min_size=len(rows), max_size=len(rows)))

    exponents, sizes, as_smaller = [each for (each,) in drawn(4, 1)], drawn(9, levels), drawn(4, levels)
    who = postings.TakingPart(
        np.full(len(rows), 3, np.uint8),
        np.array(exponents, np.uint8),
        np.array(sizes, np.uint16),
        np.array(as_smaller, np.uint8),
    )
    by_key = naive.rows_by_key(rows, [True] * len(rows))

    def meet(a: int, b: int, how_rare: int) -> bool:
        coarser = max(exponents[a], exponents[b])
        if coarser - min(exponents[a], exponents[b]) >= levels:
            return True
        at = {row: coarser - exponents[row] for row in (a, b)}
        left = {row: sizes[row][at[row]] for row in (a, b)}
        return any(left[row] == min(left.values()) and how_rare <= as_smaller[row][at[row]] for row in (a, b))

    expected: Counter[tuple[int, int]] = Counter()
    for having in by_key.values():
        how_rare = len(having).bit_length()
        if len(having) <= common and how_rare <= 3:
            expected.update((a, b) for a, b in combinations(sorted(having), 2) if meet(a, b, how_rare))
    assert expanded(*partitions_of(rows), who, common) == expected


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
