"""Tests of columns of documents: round trips, concatenation, selection, splitting and validation."""

import pickle
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.errors import Corrupt
from neardup.messages.document_columns import BATCH_BYTES, DocumentColumns, split
from neardup.types import Document
from tests.support.documents import M, anything, document, documents, plain, shingles, sketch_of


def body_of(some: list[Document]) -> dict[str, Any]:
    return DocumentColumns.from_documents(some).to_body()


def values(some: Iterable[Document]) -> list[tuple[Any, ...]]:
    return [plain(each) for each in some]


@given(groups=st.lists(st.lists(documents, max_size=4), min_size=1, max_size=4))
def test_concatenated_columns_hold_all_documents_in_order(groups: list[list[Document]]) -> None:
    got = DocumentColumns.concatenate([DocumentColumns.from_documents(some) for some in groups])
    assert values(got) == [plain(each) for some in groups for each in some]
    assert len(got) == sum(map(len, groups))


@given(some=st.lists(documents, min_size=1, max_size=6), data=st.data())
def test_selected_rows_are_the_selected_documents_in_their_order(some: list[Document], data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.integers(0, len(some) - 1), min_size=1, max_size=8))
    columns = DocumentColumns.from_documents(some)
    without_gaps = range(min(rows), max(rows) + 1)
    for chosen in (rows, without_gaps, without_gaps[::2], without_gaps[::-1]):
        assert values(columns.select(chosen)) == [plain(some[row]) for row in chosen]


@given(sizes=st.lists(st.integers(1, BATCH_BYTES), max_size=20))
def test_a_message_ends_as_soon_as_it_is_full(sizes: list[int]) -> None:
    runs = [list(run) for run in split(sizes, lambda size: size)]
    assert [size for run in runs for size in run] == sizes
    for number, run in enumerate(runs):
        assert sum(run[:-1]) <= BATCH_BYTES
        assert sum(run) > BATCH_BYTES or number == len(runs) - 1


@pytest.mark.parametrize("column", ["url", "fetched_at", "note"])
def test_rows_are_split_by_the_maximum_length_of_their_text(column: str) -> None:
    body = body_of([document(offset, 1) for offset in range(20)]) | {column: ["x" * 20_000] * 20}
    rows = list(range(19, -1, -2))
    runs = [list(run) for run in DocumentColumns.from_body(body, M).split(rows)]
    assert [row for run in runs for row in run] == rows
    # Estimated at four bytes per character, a row has 80 KB: seven rows exceed half a megabyte.
    assert [len(run) for run in runs] == [7, 3]


def test_documents_without_a_sketch_are_corrupt_where_sketches_are_required() -> None:
    body = body_of([document(0, 1)])
    body |= {"sketch": body["sketch"][:0], "words": body["words"] * 0}
    assert next(iter(DocumentColumns.from_body(body, None))).sketch.size == 0
    with pytest.raises(Corrupt, match=f"expected a packed sketch with {M} MIPs values for every document"):
        DocumentColumns.from_body(body, M)


def test_a_sketch_with_another_number_of_mips_values_is_corrupt_among_good_ones() -> None:
    some = [document(0, 1), replace(document(1, 2), sketch=sketch_of(shingles(2, 200), m=M // 2)), document(2, 3)]
    with pytest.raises(Corrupt, match=f"expected a packed sketch with {M} MIPs values for every document"):
        DocumentColumns.from_body(body_of(some), M)


def test_lengths_of_sketches_whose_sum_wraps_around_are_corrupt() -> None:
    body = body_of([document(offset, 1) for offset in range(4)])
    wrapping = np.array([2**63 - 1, 2**63 - 1, 1, body["sketch"].size + 1], np.int64)
    with np.errstate(over="ignore"):
        assert wrapping.sum() == body["sketch"].size
    with pytest.raises(Corrupt, match="expected sketches"):
        DocumentColumns.from_body(body | {"words": wrapping}, M)


@given(
    changes=st.dictionaries(st.sampled_from(sorted(body_of([]))), anything, min_size=1),
    mips=st.sampled_from([M, None]),
)
def test_any_columns_raise_only_corrupt(changes: dict[str, Any], mips: int | None) -> None:
    try:
        got = DocumentColumns.from_body(body_of([document(0, 1), document(1, 2)]) | changes, mips)
    except Corrupt:
        return
    assert all(isinstance(each.url, str) for each in got)


@pytest.mark.parametrize("column", ["url", "fetched_at", "note"])
@pytest.mark.parametrize("value", ["ab", ("a", "b"), {"a": 1, "b": 2}, ["a", 5]], ids=repr)
def test_text_columns_that_are_not_lists_of_text_are_corrupt(column: str, value: Any) -> None:
    body = body_of([document(0, 1), document(1, 2)]) | {column: value}
    with pytest.raises(Corrupt, match="as a list of text"):
        DocumentColumns.from_body(body, M)


@given(some=st.lists(documents, max_size=4))
def test_columns_survive_a_trip_to_another_process(some: list[Document]) -> None:
    assert values(pickle.loads(pickle.dumps(DocumentColumns.from_documents(some)))) == values(some)
