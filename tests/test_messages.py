"""Probes, answers, questions, evidence, orders and settled documents: round trips, sizes, and what is refused."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from neardup import wire
from neardup.answers import Answers, read_answers, split_pairs, write_answers
from neardup.control import Expire, Forget, orders, read_order
from neardup.document_batches import Settled, read_documents, write_documents
from neardup.document_columns import BATCH_BYTES
from neardup.errors import Corrupt, WireError, WrongKind, WrongPlan
from neardup.evidence import Match
from neardup.probes import Probes, read_probes, write_probes
from neardup.questions import Evidence, Question, read_evidence, read_questions, write_evidence, write_questions
from neardup.types import BatchId, Document, DocumentId, Relation
from tests.documents import (
    KAFKA_MESSAGE_BYTES,
    LONG_URLS,
    M,
    anything,
    batches,
    body_of,
    document,
    documents,
    int64,
    matches,
    places,
    plain,
    shingles,
    sketch_of,
    utf8,
    word,
)

BATCH = BatchId(0, 5, 9)
MATCH = Match(DocumentId(1, 2, 3), "u", Relation.NEAR, 2, 0.8, None, 1, DocumentId(1, 2, 3), "u")
PARTITIONS = 20
OWNERS = 5
masks = st.integers(0, 2**200)
questions = st.builds(Question, document=documents, candidates=st.dictionaries(word, masks, max_size=4))
evidence = st.builds(Evidence, places, word, st.lists(word, max_size=4).map(tuple), st.none() | matches)


# Probes


@given(data=st.data(), size=st.integers(0, 9), batch=batches)
def test_probes_come_back(data: st.DataObject, size: int, batch: BatchId) -> None:
    columns = hnp.arrays(np.uint64, size)
    keys = data.draw(st.none() | columns)
    levels = data.draw(st.none() | hnp.arrays(np.uint8, (size, 64)))
    asks = data.draw(st.none() | hnp.arrays(np.bool_, size))
    message = write_probes(Probes(batch, data.draw(columns), keys, levels, asks), "plan")
    got = read_probes(wire.decode(message, "probes"), "plan")
    assert got.batch == batch
    assert (got.asks is not None) == (asks is not None and bool(asks.any()))
    assert got.asks is None or (got.asks == asks).all()
    assert got.fingerprints.size == size
    for sent, came in ((keys, got.keys), (levels, got.levels)):
        assert (came is None) == (sent is None)
        if sent is not None and came is not None:
            np.testing.assert_array_equal(came, sent)


def test_probes_of_another_plan_are_refused_with_both_digests() -> None:
    message = write_probes(Probes(BATCH, np.zeros(1, np.uint64)), "one plan")
    with pytest.raises(WrongPlan, match="expected a message made with plan another plan, got 'one plan'"):
        read_probes(wire.decode(message, "probes"), "another plan")


def probes_body(**changes: Any) -> dict[str, Any]:
    probes = Probes(BATCH, np.arange(2, dtype=np.uint64), np.arange(2, dtype=np.uint64), np.zeros((2, 64), np.uint8))
    return body_of(write_probes(probes, "plan"), "probes") | changes


@pytest.mark.parametrize(
    "changes",
    [
        {"fingerprint": None},
        {"fingerprint": [1, 2]},
        {"fingerprint": np.zeros(2, np.int64)},
        {"fingerprint": np.zeros((2, 1), np.uint64)},
        {"key": np.zeros(3, np.uint64)},
        {"key": np.zeros(2)},
        {"key": "ab"},
        {"levels": np.zeros((2, 63), np.uint8)},
        {"levels": np.zeros((3, 64), np.uint8)},
        {"levels": np.zeros((2, 64), np.uint16)},
        {"levels": [[0] * 64] * 2},
        {"levels": 5},
        {"asks": np.zeros(3, np.uint8)},
        {"asks": np.zeros(2, np.int64)},
        {"asks": [0, 1]},
        {"levels": "x" * 128},
        {"batch": None},
        {"batch": [1, 2]},
        {"batch": [0, 1, 2**63]},
    ],
)
def test_columns_that_are_no_probes_are_corrupt(changes: dict[str, Any]) -> None:
    with pytest.raises(Corrupt, match="expected"):
        read_probes(wire.decode(wire.encode("probes", probes_body(**changes)), "probes"), "plan")


@given(
    changes=st.dictionaries(st.sampled_from(["batch", "fingerprint", "key", "levels", "asks"]), anything, min_size=1)
)
def test_whatever_probes_are_nothing_but_corrupt_is_raised(changes: dict[str, Any]) -> None:
    message = wire.encode("probes", probes_body(**changes))
    try:
        got = read_probes(wire.decode(message, "probes"), "plan")
    except Corrupt:
        return
    for column in (got.keys, got.levels):
        assert column is None or len(column) == got.fingerprints.size


def test_another_kind_of_message_is_no_probe() -> None:
    with pytest.raises(WrongKind):
        read_probes(wire.decode(wire.encode("answers", probes_body()), "probes"), "plan")


# Answers


@given(st.integers(0, PARTITIONS - 1), st.lists(batches, max_size=4), st.lists(st.tuples(word, word), max_size=9))
def test_answers_come_back(partition: int, done: list[BatchId], pairs: list[tuple[int, int]]) -> None:
    query, found = (np.array([pair[side] for pair in pairs], np.uint64) for side in (0, 1))
    body = body_of(write_answers(Answers(partition, tuple(done), query, found), "plan"), "answers")
    assert body["plan"] == "plan"
    got = read_answers(body, PARTITIONS)
    assert (got.partition, got.batches) == (partition, tuple(done))
    assert list(zip(got.query.tolist(), got.found.tolist(), strict=True)) == pairs


@given(st.integers(0, 1000), st.integers(1, 50))
def test_pairs_are_cut_into_pieces_that_are_full_but_the_last(size: int, limit: int) -> None:
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
def test_columns_that_are_no_answers_are_corrupt(changes: dict[str, Any]) -> None:
    with pytest.raises(Corrupt, match="expected partition, batches and pairs of fingerprints"):
        read_answers(answers_body(**changes), PARTITIONS)


@pytest.mark.parametrize("batch", [None, 1, [1, 2], [1, 2, 2**63], [1, 2, 3.0]])
def test_answers_for_what_is_no_batch_are_corrupt(batch: Any) -> None:
    with pytest.raises(Corrupt, match="expected a batch as partition, first and last offset"):
        read_answers(answers_body(batches=[batch]), PARTITIONS)


def test_an_answer_that_nothing_was_found_is_short() -> None:
    nothing = np.empty(0, np.uint64)
    assert len(write_answers(Answers(1, (BATCH,), nothing, nothing), "plan")) < 80


@given(changes=st.dictionaries(st.sampled_from(["partition", "batches", "query", "found"]), anything, min_size=1))
def test_whatever_answers_are_nothing_but_corrupt_is_raised(changes: dict[str, Any]) -> None:
    try:
        got = read_answers(answers_body(**changes), PARTITIONS)
    except Corrupt:
        return
    assert got.partition in range(PARTITIONS)
    assert got.query.size == got.found.size
    assert all(len(batch) == 3 for batch in got.batches)


# Questions and evidence


@given(st.lists(questions, max_size=5), st.integers(0, OWNERS - 1))
def test_questions_come_back_with_who_asked(some: list[Question], asker: int) -> None:
    messages = list(write_questions(some, asker, "plan"))
    assert {body_of(message, "questions")["plan"] for message in messages} <= {"plan"}
    got = [read_questions(body_of(message, "questions"), OWNERS, M) for message in messages]
    assert {who for who, _ in got} <= {asker}
    assert [(plain(each.document), each.candidates) for _, many in got for each in many] == [
        (plain(each.document), each.candidates) for each in some
    ]


@pytest.mark.parametrize("candidates", [1, 40_000])
def test_many_questions_are_split_and_stay_below_what_kafka_takes(candidates: int) -> None:
    one = document(0, 1)
    near = dict.fromkeys(range(candidates), 2**20)
    some = [Question(replace(one, id=one.id._replace(offset=n)), near) for n in range(2000 if candidates == 1 else 3)]
    messages = list(write_questions(some, 1, "plan"))
    assert len(messages) > 1
    assert max(map(len, messages)) < KAFKA_MESSAGE_BYTES
    got = [each for message in messages for each in read_questions(body_of(message, "questions"), OWNERS, M)[1]]
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
def test_columns_that_are_no_questions_are_corrupt(changes: dict[str, Any]) -> None:
    with pytest.raises(Corrupt, match="expected"):
        read_questions(questions_body(**changes), OWNERS, M)


@pytest.mark.parametrize("asker", [-1, OWNERS, 2**63, 0.0, float("inf"), None, "one", [0], np.zeros(2, np.int64)])
def test_questions_of_nobody_who_owns_are_corrupt(asker: Any) -> None:
    with pytest.raises(Corrupt, match=f"expected an owner below {OWNERS}, got "):
        read_questions(questions_body(asker=asker), OWNERS, M)


def test_questions_with_another_number_of_mips_values_are_corrupt() -> None:
    asking = replace(document(0, 1), sketch=sketch_of(shingles(1, 200), m=M // 2))
    [message] = write_questions([Question(asking, {7: 1})], 0, "plan")
    with pytest.raises(Corrupt, match=f"expected a packed sketch with {M} MIPs values"):
        read_questions(body_of(message, "questions"), OWNERS, M)


def questions_body(**changes: Any) -> dict[str, Any]:
    [message] = write_questions([Question(document(0, 1), {7: 1})], 0, "plan")
    return body_of(message, "questions") | changes


@given(
    changes=st.dictionaries(
        st.sampled_from(["number", "candidate", "found_by", "asker", "url", "fingerprint", "sketch", "words"]),
        anything,
        min_size=1,
    )
)
def test_whatever_questions_are_nothing_but_corrupt_is_raised(changes: dict[str, Any]) -> None:
    try:
        asker, got = read_questions(questions_body(**changes), OWNERS, M)
    except Corrupt:
        return
    # What passes can be sent again.
    [again] = write_questions(got, asker, "plan")
    assert read_questions(body_of(again, "questions"), OWNERS, M)[0] == asker


@given(st.lists(evidence, max_size=6))
def test_evidence_comes_back(some: list[Evidence]) -> None:
    bodies = [body_of(message, "evidence") for message in write_evidence(some, "plan")]
    assert {body["plan"] for body in bodies} <= {"plan"}
    assert [each for body in bodies for each in read_evidence(body)] == some


def test_much_evidence_is_split_and_stays_below_what_kafka_takes() -> None:
    long = MATCH._replace(url="u" * 150, group_url="v" * 150)
    some = [Evidence(DocumentId(n, 0, n), n, (n, n + 1), long if n % 2 else None) for n in range(4000)]
    messages = list(write_evidence(some, "plan"))
    assert len(messages) > 1
    assert max(map(len, messages)) < KAFKA_MESSAGE_BYTES
    assert [each for message in messages for each in read_evidence(body_of(message, "evidence"))] == some


@pytest.mark.parametrize("url", LONG_URLS)
def test_evidence_with_long_urls_stays_below_what_kafka_takes(url: str) -> None:
    long = MATCH._replace(url=url, group_url=url)
    some = [Evidence(DocumentId(n, 0, n), n, (n,), long) for n in range(150)]
    messages = list(write_evidence(some, "plan"))
    assert max(map(len, messages)) <= BATCH_BYTES + 2 * len(url.encode()) + 1024 < KAFKA_MESSAGE_BYTES
    assert [each for message in messages for each in read_evidence(body_of(message, "evidence"))] == some


NEAR: list[Any] = [[1, 2, 3], "u", 3, 2, 0.8, None, b"\x01", [1, 2, 3], "u"]


def about(match: Any) -> dict[str, Any]:
    """The body of a message with one row of evidence."""
    return {
        "document": np.array([[1, 2, 3]], np.int64), "fingerprint": words(4), "candidate": words(5, 6),
        "candidates": counts(2), "match": [match],
    }  # fmt: skip


def words(*some: int) -> NDArray[np.uint64]:
    return np.array(some, np.uint64)


def counts(*some: int) -> NDArray[np.int64]:
    return np.array(some, np.int64)


def near_with(place: int, value: Any) -> list[Any]:
    """A match with one of its values replaced."""
    return [*NEAR[:place], value, *NEAR[place + 1 :]]


def test_the_plain_values_of_a_match_are_read() -> None:
    [read] = read_evidence(about(NEAR))
    assert read == Evidence(DocumentId(1, 2, 3), 4, (5, 6), MATCH)


@pytest.mark.parametrize(
    "match",
    [
        5, [1], [[1, 2], "u", 9], {}, [*NEAR, 0],
        near_with(0, [1, 2]), near_with(0, "abc"), near_with(1, 5), near_with(2, 5), near_with(2, -1),
        near_with(0, [1, 2, None]), near_with(0, [1.0, 2, 3]), near_with(0, [2**63, 2, 3]),
        near_with(2, "near"), near_with(3, None), near_with(4, "much"), near_with(4, None), near_with(5, "x"),
        near_with(6, 1), near_with(6, [1]), near_with(7, [1, 2, 2**63]), near_with(7, [1, 2, -(2**63) - 1]),
        near_with(8, None),
    ],
)  # fmt: skip
def test_values_that_are_no_match_are_corrupt(match: Any) -> None:
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
def test_columns_that_are_no_evidence_are_corrupt(changes: dict[str, Any]) -> None:
    with pytest.raises(Corrupt, match="expected"):
        read_evidence(about(None) | changes)


@pytest.mark.parametrize("name", about(None))
def test_without_a_column_there_is_no_evidence(name: str) -> None:
    body = about(None)
    del body[name]
    with pytest.raises(Corrupt, match="expected the columns of evidence"):
        read_evidence(body)


match_like = st.builds(near_with, st.integers(0, 8), anything)


@given(match=anything | match_like, name=st.none() | st.sampled_from(sorted(about(None))), column=anything)
def test_whatever_evidence_is_nothing_but_corrupt_is_raised(match: Any, name: str | None, column: Any) -> None:
    try:
        got = read_evidence(about(match) | ({name: column} if name else {}))
    except Corrupt:
        return
    # What passes can be sent again, and so be stored.
    again = [each for message in write_evidence(got, "plan") for each in read_evidence(body_of(message, "evidence"))]
    assert repr(again) == repr(got)


# Orders


@pytest.mark.parametrize("order", [Forget("http://é/"), Expire(0), Expire(2**40)])
def test_an_order_reaches_every_owner_as_it_was_given(order: Forget | Expire) -> None:
    outputs = orders(order, "inbox", 3)
    assert [(output.topic, output.partition) for output in outputs] == [("inbox", 0), ("inbox", 1), ("inbox", 2)]
    for output in outputs:
        assert read_order(body_of(output.value, "control")) == order


@pytest.mark.parametrize("body", [{}, {"forget": 5}, {"forget": None}, {"expire": "now"}, {"expire": 1.5}, {"drop": 1}])
def test_other_orders_are_corrupt(body: dict[str, Any]) -> None:
    with pytest.raises(Corrupt, match="expected an order to forget a url or to expire"):
        read_order(body)


@given(body=st.dictionaries(st.sampled_from(["forget", "expire", "drop"]), anything))
def test_whatever_orders_are_nothing_but_corrupt_is_raised(body: dict[str, Any]) -> None:
    try:
        got = read_order(body)
    except Corrupt:
        return
    assert isinstance(got[0], str if isinstance(got, Forget) else int)


# Settled documents


def same_tokens(match: Match | None) -> bool:
    return match is not None and match.relation in (Relation.IDENTICAL, Relation.SAME_TEXT)


@given(st.lists(st.tuples(documents, st.none() | matches), max_size=5))
def test_settled_documents_come_back_and_copies_without_their_sketch(some: list[tuple[Document, Match | None]]) -> None:
    messages = list(write_documents([Settled(*each) for each in some], "nd1"))
    got = [each for message in messages for each in read_documents(message)]
    assert [match for _, match in got] == [match for _, match in some]
    for (sent, match), (came, _) in zip(some, got, strict=True):
        expected = replace(sent, sketch=np.empty(0, np.uint64)) if same_tokens(match) else sent
        assert plain(came) == plain(expected)


def test_many_settled_documents_stay_below_what_kafka_takes() -> None:
    some = [Settled(document(offset, 1), MATCH) for offset in range(2000)]
    messages = list(write_documents(some, "nd1"))
    assert len(messages) > 1
    assert max(map(len, messages)) < KAFKA_MESSAGE_BYTES
    assert sum(len(read_documents(message)) for message in messages) == 2000


@pytest.mark.parametrize("url", LONG_URLS)
def test_settled_documents_with_long_urls_stay_below_what_kafka_takes(url: str) -> None:
    match = MATCH._replace(url=url, group_url=url)
    one = document(0, 1, url=url)
    some = [Settled(replace(one, id=one.id._replace(offset=offset)), match) for offset in range(100)]
    messages = list(write_documents(some, "nd1"))
    assert max(map(len, messages)) <= BATCH_BYTES + 3 * len(url.encode()) + 4096 < KAFKA_MESSAGE_BYTES
    got = [each for message in messages for each in read_documents(message)]
    assert [(each.document.id, each.match) for each in got] == [(each.document.id, match) for each in some]


@pytest.mark.parametrize("rows", [0, 2])
def test_settled_documents_with_another_number_of_checksums_are_corrupt(rows: int) -> None:
    [message] = write_documents([Settled(document(0, 1), None)], "nd1")
    changed = body_of(message, "documents") | {"checksums": np.zeros((rows, 48), np.uint8)}
    with pytest.raises(Corrupt, match=f"expected 1 rows of checksums, got {rows}"):
        read_documents(wire.encode("documents", changed))


@given(
    changes=st.dictionaries(
        st.sampled_from(["match", "url", "sketch", "fingerprint", "checksums", "id", "words"]), anything, min_size=1
    )
)
def test_whatever_settled_documents_are_nothing_but_wire_errors_is_raised(changes: dict[str, Any]) -> None:
    [message] = write_documents([Settled(document(0, 1), None)], "nd1")
    try:
        got = read_documents(wire.encode("documents", body_of(message, "documents") | changes))
    except WireError:
        return
    assert all(isinstance(each.document.url, str) for each in got)


@given(value=st.none() | st.binary() | utf8.map(str.encode), number=int64)
def test_what_is_no_message_of_ours_is_a_wire_error(value: bytes | None, number: int) -> None:
    with pytest.raises(WireError):
        read_probes(wire.decode(value, "probes"), "plan")
    with pytest.raises(WireError):
        read_documents(value)
    with pytest.raises(Corrupt):
        read_order({"forget": number})
