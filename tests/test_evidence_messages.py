"""Evidence between owners: round trips, sizes, and what is refused."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.document_columns import BATCH_BYTES
from neardup.errors import Corrupt
from neardup.evidence import Match
from neardup.questions import Evidence, read_evidence, write_evidence
from neardup.types import DocumentId, Relation
from tests.documents import (
    KAFKA_MESSAGE_BYTES,
    LONG_URLS,
    anything,
    body_of,
    matches,
    places,
    word,
)

MATCH = Match(DocumentId(1, 2, 3), "u", Relation.NEAR, 2, 0.8, None, 1, DocumentId(1, 2, 3), "u")
evidence = st.builds(Evidence, places, word, word, st.none() | matches)


@given(st.lists(evidence, max_size=6))
def test_evidence_comes_back(some: list[Evidence]) -> None:
    bodies = [body_of(message, "evidence") for message in write_evidence(some, "plan")]
    assert {body["plan"] for body in bodies} <= {"plan"}
    assert [each for body in bodies for each in read_evidence(body)] == some


def test_much_evidence_is_split_and_stays_below_what_kafka_takes() -> None:
    long = MATCH._replace(url="u" * 150, group_url="v" * 150)
    some = [Evidence(DocumentId(n, 0, n), n, n, long if n % 2 else None) for n in range(4000)]
    messages = list(write_evidence(some, "plan"))
    assert len(messages) > 1
    assert max(map(len, messages)) < KAFKA_MESSAGE_BYTES
    assert [each for message in messages for each in read_evidence(body_of(message, "evidence"))] == some


@pytest.mark.parametrize("url", LONG_URLS)
def test_evidence_with_long_urls_stays_below_what_kafka_takes(url: str) -> None:
    long = MATCH._replace(url=url, group_url=url)
    some = [Evidence(DocumentId(n, 0, n), n, n, long) for n in range(150)]
    messages = list(write_evidence(some, "plan"))
    assert max(map(len, messages)) <= BATCH_BYTES + 2 * len(url.encode()) + 1024 < KAFKA_MESSAGE_BYTES
    assert [each for message in messages for each in read_evidence(body_of(message, "evidence"))] == some


NEAR: list[Any] = [[1, 2, 3], "u", 3, 2, 0.8, None, b"\x01", [1, 2, 3], "u"]


def near_with(place: int, value: Any) -> list[Any]:
    """Evidence of a match with one of its values replaced."""
    return [1, 2, 3, 4, 5, [*NEAR[:place], value, *NEAR[place + 1 :]]]


def test_the_plain_values_of_a_match_are_read() -> None:
    [read] = read_evidence({"rows": [[1, 2, 3, 4, 5, NEAR]]})
    assert read == Evidence(DocumentId(1, 2, 3), 4, 5, MATCH)


@pytest.mark.parametrize(
    "row",
    [
        5, [1, 2], [1, 2, 3, 4, 5], [1, 2, 3, 4, 5, [1]], [1, 2, 3, 4, 5, [[1, 2], "u", 9]], [1, 2, 3, "x", 5, None],
        [1, 2, 3, 4, -1, None], [1, 2, 3, 2**64, 5, None], [1, 2, 3, 4, 5.0, None], [2**63, 2, 3, 4, 5, None],
        [1, 2, None, 4, 5, None], [1, 2, 3, 4, 5, {}], [1, 2, 3, 4, 5, [*NEAR, 0]],
        near_with(0, [1, 2]), near_with(0, "abc"), near_with(1, 5), near_with(2, 5), near_with(2, -1),
        near_with(2, "near"), near_with(3, None), near_with(4, "much"), near_with(4, None), near_with(5, "x"),
        near_with(6, 1), near_with(6, [1]), near_with(7, [1, 2, 2**63]), near_with(8, None),
    ],
)  # fmt: skip
def test_rows_that_are_no_evidence_are_corrupt(row: Any) -> None:
    with pytest.raises(Corrupt, match="expected"):
        read_evidence({"rows": [row]})


@pytest.mark.parametrize("body", [{}, {"rows": None}, {"rows": 5}])
def test_without_rows_there_is_no_evidence(body: dict[str, Any]) -> None:
    with pytest.raises(Corrupt, match="expected rows of evidence"):
        read_evidence(body)


match_like = st.builds(near_with, st.integers(0, 8), anything)


@given(rows=anything | st.lists(match_like | st.lists(anything, min_size=6, max_size=6), max_size=3))
def test_whatever_evidence_is_nothing_but_corrupt_is_raised(rows: Any) -> None:
    try:
        got = read_evidence({"rows": rows})
    except Corrupt:
        return
    # What passes can be sent again, and so be stored.
    again = [each for message in write_evidence(got, "plan") for each in read_evidence(body_of(message, "evidence"))]
    assert repr(again) == repr(got)
