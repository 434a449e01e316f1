"""Tests of answers: round trips, splitting into messages, and rejection of invalid ones."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.errors import Corrupt
from neardup.messages.answers import Answers, read_answers, split_pairs, write_answers
from neardup.types import BatchId
from tests.support.documents import (
    anything,
    batches,
    body_of,
    word,
)

BATCH = BatchId(0, 5, 9)
PARTITIONS = 20


@given(st.integers(0, PARTITIONS - 1), st.lists(batches, max_size=4), st.lists(st.tuples(word, word), max_size=9))
def test_answers_are_read_back(partition: int, done: list[BatchId], pairs: list[tuple[int, int]]) -> None:
    query, found = (np.array([pair[side] for pair in pairs], np.uint64) for side in (0, 1))
    body = body_of(write_answers(Answers(partition, tuple(done), query, found), "plan"), "answers")
    assert body["plan"] == "plan"
    got = read_answers(body, PARTITIONS)
    assert (got.partition, got.batches) == (partition, tuple(done))
    assert list(zip(got.query.tolist(), got.found.tolist(), strict=True)) == pairs


@given(st.integers(0, 1000), st.integers(1, 50))
def test_pairs_are_split_into_messages_and_only_the_last_is_not_full(size: int, limit: int) -> None:
    numbers = list(range(size))
    pieces = [numbers[piece] for piece in split_pairs(size, limit)]
    assert pieces
    assert [each for piece in pieces for each in piece] == numbers
    assert all(len(piece) == limit for piece in pieces[:-1])
    assert len(pieces[-1]) <= limit


ANSWERS = Answers(1, (BATCH,), np.arange(2, dtype=np.uint64), np.arange(2, dtype=np.uint64))


def answers_body(**changes: Any) -> dict[str, Any]:
    return body_of(write_answers(ANSWERS, "plan"), "answers") | changes


@pytest.mark.parametrize(
    "partition", [-1, PARTITIONS, 2**63, 0.0, float("nan"), None, "1", [1], np.zeros(1, np.int64), np.zeros(2)]
)
def test_answers_of_a_partition_outside_the_plan_are_corrupt(partition: Any) -> None:
    with pytest.raises(Corrupt, match="expected partition, batches and pairs of fingerprints"):
        read_answers(answers_body(partition=partition), PARTITIONS)


@pytest.mark.parametrize(
    "changes",
    [
        {"batches": None},
        {"batches": np.zeros((1, 3), np.int64)},
        {"query": np.zeros(3, np.uint64)},
        {"query": np.zeros(2, np.int64)},
        {"found": [1, 2]},
        {"found": np.zeros((2, 1), np.uint64)},
    ],
)
def test_invalid_columns_of_answers_are_corrupt(changes: dict[str, Any]) -> None:
    with pytest.raises(Corrupt, match="expected partition, batches and pairs of fingerprints"):
        read_answers(answers_body(**changes), PARTITIONS)


@pytest.mark.parametrize("batch", [None, 1, [1, 2], [1, 2, 2**63], [1, 2, 3.0]])
def test_answers_for_an_invalid_batch_are_corrupt(batch: Any) -> None:
    with pytest.raises(Corrupt, match="expected a batch as partition, first and last offset"):
        read_answers(answers_body(batches=[batch]), PARTITIONS)


def test_an_answer_without_matches_is_short() -> None:
    nothing = np.empty(0, np.uint64)
    assert len(write_answers(Answers(1, (BATCH,), nothing, nothing), "plan")) < 80


@given(changes=st.dictionaries(st.sampled_from(["partition", "batches", "query", "found"]), anything, min_size=1))
def test_any_body_of_answers_raises_only_corrupt(changes: dict[str, Any]) -> None:
    try:
        got = read_answers(answers_body(**changes), PARTITIONS)
    except Corrupt:
        return
    assert got.partition in range(PARTITIONS)
    assert got.query.size == got.found.size
    assert all(len(batch) == 3 for batch in got.batches)
