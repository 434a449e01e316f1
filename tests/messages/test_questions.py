"""Tests of questions between owners: round trips, sizes, and rejection of invalid ones."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.errors import Corrupt
from neardup.matching.found_by import FoundBy, found_by_table
from neardup.messages.questions import Question, read_questions, write_questions
from tests.support.documents import (
    KAFKA_MESSAGE_BYTES,
    M,
    anything,
    body_of,
    document,
    documents,
    plain,
    shingles,
    sketch_of,
    word,
)

OWNERS = 5
masks = st.integers(0, 2**200).map(FoundBy)
questions = st.builds(Question, document=documents, candidates=st.dictionaries(word, masks, max_size=4))


@given(st.lists(questions, max_size=5), st.integers(0, OWNERS - 1))
def test_questions_are_read_back_with_their_asker(some: list[Question], asker: int) -> None:
    messages = list(write_questions(some, asker, "plan"))
    assert {body_of(message, "questions")["plan"] for message in messages} <= {"plan"}
    got = [read_questions(body_of(message, "questions"), OWNERS, M) for message in messages]
    assert {each.asker for each in got} <= {asker}
    assert [(plain(each.document), each.candidates) for batch in got for each in batch.questions] == [
        (plain(each.document), each.candidates) for each in some
    ]


@pytest.mark.parametrize("candidates", [1, 40_000])
def test_many_questions_are_split_into_messages_below_the_limit_of_kafka(candidates: int) -> None:
    one = document(0, 1)
    near = dict.fromkeys(range(candidates), found_by_table(20))
    some = [Question(replace(one, id=one.id._replace(offset=n)), near) for n in range(2000 if candidates == 1 else 3)]
    messages = list(write_questions(some, 1, "plan"))
    assert len(messages) > 1
    assert max(map(len, messages)) < KAFKA_MESSAGE_BYTES
    got = [each for message in messages for each in read_questions(body_of(message, "questions"), OWNERS, M).questions]
    assert [(each.document.id, each.candidates) for each in got] == [(each.document.id, near) for each in some]


@pytest.mark.parametrize(
    "changes",
    [
        {"number": None},
        {"number": np.array([5], np.int64)},
        {"number": np.zeros(2, np.int64)},
        {"number": np.zeros(1)},
        {"number": np.array([-1], np.int64)},
        {"candidate": [1]},
        {"candidate": np.array([7.0])},
        {"candidate": np.array([-7], np.int64)},
        {"found_by": ["text"]},
        {"found_by": [[1]]},
        {"found_by": None},
        {"url": [5]},
        {"sketch": np.zeros(0, np.uint64), "words": np.zeros(1, np.int64)},
    ],
)
def test_invalid_columns_of_questions_are_corrupt(changes: dict[str, Any]) -> None:
    with pytest.raises(Corrupt, match="expected"):
        read_questions(questions_body(**changes), OWNERS, M)


@pytest.mark.parametrize("asker", [-1, OWNERS, 2**63, 0.0, float("inf"), None, "one", [0], np.zeros(2, np.int64)])
def test_questions_of_an_owner_outside_the_plan_are_corrupt(asker: Any) -> None:
    with pytest.raises(Corrupt, match=f"expected an owner below {OWNERS}, got "):
        read_questions(questions_body(asker=asker), OWNERS, M)


def test_questions_with_another_number_of_mips_values_are_corrupt() -> None:
    asking = replace(document(0, 1), sketch=sketch_of(shingles(1, 200), m=M // 2))
    [message] = write_questions([Question(asking, {7: found_by_table(0)})], 0, "plan")
    with pytest.raises(Corrupt, match=f"expected a packed sketch with {M} MIPs values"):
        read_questions(body_of(message, "questions"), OWNERS, M)


def questions_body(**changes: Any) -> dict[str, Any]:
    [message] = write_questions([Question(document(0, 1), {7: found_by_table(0)})], 0, "plan")
    return body_of(message, "questions") | changes


@given(
    changes=st.dictionaries(
        st.sampled_from(["number", "candidate", "found_by", "asker", "url", "fingerprint", "sketch", "words"]),
        anything,
        min_size=1,
    )
)
def test_any_questions_raise_only_corrupt(changes: dict[str, Any]) -> None:
    try:
        got = read_questions(questions_body(**changes), OWNERS, M)
    except Corrupt:
        return
    # Questions that pass validation can be sent again.
    [again] = write_questions(got.questions, got.asker, "plan")
    assert read_questions(body_of(again, "questions"), OWNERS, M).asker == got.asker
