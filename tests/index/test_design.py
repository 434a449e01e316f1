"""Tests of designs of the exact search against the paper and against enumeration."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neardup.index.plan.design import Design, block_sizes, designs, fewest_tables, longest_leading, tables_needed
from tests.support.fingerprints import EXAMPLES, fingerprints, words
from tests.support.naive import distance, permuted


@pytest.mark.parametrize(
    ("tables", "splits", "leading"),
    [(20, (6,), {31, 32, 33}), (16, (4, 4), {28}), (10, (5,), {25, 26}), (4, (4,), {16})],
)
def test_the_designs_of_example_3_1(tables: int, splits: tuple[int, ...], leading: set[int]) -> None:
    design = longest_leading(3, tables)
    assert design == Design(3, splits)
    assert {table.leading for table in design.tables()} == leading
    assert len(design.tables()) == tables
    assert fewest_tables(3, min(leading)) == design


def test_block_sizes_of_example_3_1() -> None:
    assert block_sizes(64, 6) == [11, 11, 11, 11, 10, 10]
    assert block_sizes(64, 5) == [13, 13, 13, 13, 12]


@pytest.mark.parametrize(("least", "tables"), [(16, 4), (25, 10), (28, 16), (32, 20)])
def test_the_recursion_of_3_1_2(least: int, tables: int) -> None:
    assert tables_needed(64, 3, 34, 34 - least) == tables


def test_the_recursion_agrees_with_whole_blocks_where_blocks_are_whole() -> None:
    for k in (1, 3, 7):
        for least in (8, 16, 24):
            real = tables_needed(64, k, 40, 40 - least)
            whole = fewest_tables(k, least).table_count
            assert real <= whole <= 2 * real


@pytest.mark.parametrize("k", range(8))
def test_the_least_leading_bits_are_those_of_the_tables(k: int) -> None:
    for design in designs(k, 130):
        tables = design.tables()
        assert len(tables) == design.table_count <= 130
        assert min(table.leading for table in tables) == design.least_leading


@pytest.mark.parametrize("k", range(8))
def test_more_tables_never_mean_fewer_leading_bits(k: int) -> None:
    kept = designs(k, 400)
    assert [d.least_leading for d in kept] == sorted({d.least_leading for d in kept})
    assert [d.table_count for d in kept] == sorted(d.table_count for d in kept)


@settings(max_examples=EXAMPLES)
@given(st.integers(0, 7), st.integers(1, 60), fingerprints(8))
def test_fingerprints_within_k_share_the_leading_bits_of_some_table(k: int, most: int, values: list[int]) -> None:
    tables = longest_leading(k, most).tables()
    keys = [table.keys_of(words(values)) for table in tables]
    for i, x in enumerate(values):
        for j, y in enumerate(values):
            if distance(x, y) <= k:
                assert any(int((key[i] ^ key[j]) & table.mask) == 0 for table, key in zip(tables, keys, strict=True))


@pytest.mark.parametrize("size", [511, 512, 513, 1200])
def test_permuting_more_than_a_block(size: int) -> None:
    values = [number * 0x9E3779B97F4A7C15 % 2**64 for number in range(size)]
    for table in longest_leading(3, 10).tables():
        assert table.keys_of(words(values)).tolist() == [permuted(value, table.order) for value in values]


@settings(max_examples=EXAMPLES)
@given(fingerprints(8), st.integers(2, 40))
def test_permuting_moves_bits_and_is_invertible(values: list[int], most: int) -> None:
    for table in longest_leading(2, most).tables():
        keys = table.keys_of(words(values))
        assert keys.tolist() == [permuted(value, table.order) for value in values]
        assert table.fingerprints_of(keys).tolist() == values
