"""Tests of evidence between owners: round trips, sizes, and rejection of invalid messages."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from neardup.errors import Corrupt
from neardup.matching.found_by import found_by_table
from neardup.matching.match import Match
from neardup.messages.document_columns import BATCH_BYTES
from neardup.messages.questions import Evidence, read_evidence, write_evidence
from neardup.types import DocumentId, Relation
from tests.support.documents import (
    KAFKA_MESSAGE_BYTES,
    LONG_URLS,
    anything,
    body_of,
    matches,
    places,
    word,
)

MATCH = Match(
    id=DocumentId(1, 2, 3),
    url="u",
    relation=Relation.NEAR,
    hamming=2,
    resemblance=0.8,
    containment=None,
    found_by=found_by_table(0),
    group=DocumentId(1, 2, 3),
    group_url="u",
)
evidence = st.builds(Evidence, places, word, st.lists(word, max_size=4).map(tuple), st.none() | matches)


@given(st.lists(evidence, max_size=6))
def test_evidence_is_read_back(some: list[Evidence]) -> None:
    bodies = [body_of(message, "evidence") for message in write_evidence(some, "plan")]
    assert {body["plan"] for body in bodies} <= {"plan"}
    assert [each for body in bodies for each in read_evidence(body).evidence] == some


def test_much_evidence_is_split_into_messages_below_the_limit_of_kafka() -> None:
    long = replace(MATCH, url="u" * 150, group_url="v" * 150)
    some = [Evidence(DocumentId(n, 0, n), n, (n, n + 1), long if n % 2 else None) for n in range(4000)]
    messages = list(write_evidence(some, "plan"))
    assert len(messages) > 1
    assert max(map(len, messages)) < KAFKA_MESSAGE_BYTES
    assert [each for message in messages for each in read_evidence(body_of(message, "evidence")).evidence] == some


@pytest.mark.parametrize("url", LONG_URLS)
def test_evidence_with_long_urls_stays_below_the_limit_of_kafka(url: str) -> None:
    long = replace(MATCH, url=url, group_url=url)
    some = [Evidence(DocumentId(n, 0, n), n, (n,), long) for n in range(150)]
    messages = list(write_evidence(some, "plan"))
    assert max(map(len, messages)) <= BATCH_BYTES + 2 * len(url.encode()) + 1024 < KAFKA_MESSAGE_BYTES
    assert [each for message in messages for each in read_evidence(body_of(message, "evidence")).evidence] == some


NEAR: list[Any] = [[1, 2, 3], "u", 3, 2, 0.8, None, b"\x01", [1, 2, 3], "u"]


def about(match: Any) -> dict[str, Any]:
    """Return the body of a message with one row of evidence."""
    return {
        "document": np.array([[1, 2, 3]], np.int64), "fingerprint": words(4), "candidate": words(5, 6),
        "candidates": counts(2), "match": [match],
    }  # fmt: skip


def words(*some: int) -> NDArray[np.uint64]:
    return np.array(some, np.uint64)


def counts(*some: int) -> NDArray[np.int64]:
    return np.array(some, np.int64)


def match_with(place: int, value: Any) -> list[Any]:
    """Return a match with one of its values replaced."""
    return [*NEAR[:place], value, *NEAR[place + 1 :]]


def test_the_plain_values_of_a_match_are_read() -> None:
    [read] = read_evidence(about(NEAR)).evidence
    assert read == Evidence(DocumentId(1, 2, 3), 4, (5, 6), MATCH)


@pytest.mark.parametrize(
    "match",
    [
        5, [1], [[1, 2], "u", 9], {}, [*NEAR, 0],
        match_with(0, [1, 2]), match_with(0, "abc"), match_with(1, 5), match_with(2, 5), match_with(2, -1),
        match_with(0, [1, 2, None]), match_with(0, [1.0, 2, 3]), match_with(0, [2**63, 2, 3]),
        match_with(2, "near"), match_with(3, None), match_with(4, "much"), match_with(4, None), match_with(5, "x"),
        match_with(6, 1), match_with(6, [1]), match_with(7, [1, 2, 2**63]), match_with(7, [1, 2, -(2**63) - 1]),
        match_with(8, None),
    ],
)  # fmt: skip
def test_an_invalid_match_is_corrupt(match: Any) -> None:
    with pytest.raises(Corrupt, match="expected"):
        read_evidence(about(match))


@pytest.mark.parametrize(
    "changes",
    [
        {"document": np.array([[1, 2]], np.int64)}, {"document": counts(1)}, {"document": [[1, 2, 3]]},
        {"document": np.array([[1, 2, 3]], np.uint64)}, {"document": np.empty((0, 3), np.int64)},
        {"fingerprint": counts(4)}, {"fingerprint": words(4, 5)}, {"fingerprint": [4]}, {"candidate": counts(5, 6)},
        {"candidate": words(5)}, {"candidate": [5, 6]}, {"candidates": counts(3)}, {"candidates": counts(1)},
        {"candidates": counts(-1)}, {"candidates": words(2)}, {"candidates": 2}, {"match": []}, {"match": None},
        {"match": [None, None]}, {"match": 5},
        {
            "document": np.zeros((4, 3), np.int64), "fingerprint": words(1, 2, 3, 4), "match": [None] * 4,
            "candidates": counts(2**63 - 1, 2**63 - 1, 2, 2),
        },
    ],
)  # fmt: skip
def test_invalid_columns_of_evidence_are_corrupt(changes: dict[str, Any]) -> None:
    with pytest.raises(Corrupt, match="expected"):
        read_evidence(about(None) | changes)


@pytest.mark.parametrize("name", about(None))
def test_evidence_without_a_column_is_corrupt(name: str) -> None:
    body = about(None)
    del body[name]
    with pytest.raises(Corrupt, match="expected the columns of evidence"):
        read_evidence(body)


match_like = st.builds(match_with, st.integers(0, 8), anything)


@given(match=anything | match_like, name=st.none() | st.sampled_from(sorted(about(None))), column=anything)
def test_any_evidence_raises_only_corrupt(match: Any, name: str | None, column: Any) -> None:
    try:
        got = read_evidence(about(match) | ({name: column} if name else {})).evidence
    except Corrupt:
        return
    # Evidence that passes validation can be sent again, and can therefore be stored.
    again = [
        each for message in write_evidence(got, "plan") for each in read_evidence(body_of(message, "evidence")).evidence
    ]
    assert repr(again) == repr(got)
