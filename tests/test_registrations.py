"""Registrations and the columns of documents: what comes back, how messages are cut, what is refused."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from neardup.document_columns import BATCH_BYTES, split
from neardup.errors import Corrupt, WireError
from neardup.registrations import (
    Registrations,
    batch_of,
    read_registrations,
    read_skipped,
    write_registrations,
    write_skipped,
)
from neardup.types import BatchId, Document, SkippedPage
from tests.documents import KAFKA_MESSAGE_BYTES, anything, batches, body_of, document, documents, places, plain, utf8

BATCH = BatchId(2, 10, 19)
COLUMNS = ("id", "url", "fetched_at", "fingerprint", "checksums", "size", "sketch", "words", "note")
FUZZED = [*(name for name in COLUMNS if name != "checksums"), "batch", "expected"]
skipped_pages = st.builds(SkippedPage, id=places, url=utf8, fetched_at=st.none() | utf8, reason=utf8)


def body(**changes: Any) -> dict[str, Any]:
    """A message of two documents, some columns replaced."""
    [message] = write_registrations(BATCH, [0, 3], [document(0, 1), document(1, 2, note="cut")], "plan")
    return body_of(message, "registrations") | changes


def read_all(messages: list[bytes]) -> list[Registrations]:
    return [read_registrations(body_of(message, "registrations")) for message in messages]


def values(registrations: list[Registrations]) -> list[tuple[Any, ...]]:
    return [plain(each) for some in registrations for each in some.documents]


# Round trip and splitting


@given(batch=batches, expected=st.lists(st.integers(0, 2**40), max_size=5), some=st.lists(documents, max_size=10))
def test_documents_come_back_in_order_with_who_will_answer(
    batch: BatchId, expected: list[int], some: list[Document]
) -> None:
    messages = list(write_registrations(batch, expected, some, "plan"))
    assert len(messages) == (1 if some else 0)
    got = read_all(messages)
    assert values(got) == [plain(each) for each in some]
    for each in got:
        assert each.batch == batch
        assert each.expected == tuple(expected)
    assert {body_of(message, "registrations")["plan"] for message in messages} <= {"plan"}


def test_a_document_does_not_keep_its_message_in_memory() -> None:
    [registrations] = read_all(list(write_registrations(BATCH, [0], [document(0, 1)], "plan")))
    assert registrations.documents[0].sketch.base is None


@pytest.mark.parametrize("length", [10, 300, 8192])
def test_many_documents_are_split_into_messages_of_about_512_kb(length: int) -> None:
    one = document(0, 1, url="u" * length)
    bytes_each = one.sketch.nbytes + length + 120
    some = [replace(one, id=one.id._replace(offset=offset)) for offset in range(3 * BATCH_BYTES // bytes_each)]
    messages = list(write_registrations(BATCH, [1, 2], some, "plan"))
    assert len(messages) > 1
    got = read_all(messages)
    assert values(got) == [plain(each) for each in some]
    assert {(each.batch, each.expected) for each in got} == {(BATCH, (1, 2))}
    assert max(map(len, messages)) <= BATCH_BYTES + bytes_each + 1024
    for message in messages[:-1]:
        # The count of bytes a document is an estimate from above: a character may take four bytes.
        assert len(message) > BATCH_BYTES / 5


@pytest.mark.parametrize("text", ["é" * 8000, "日" * 8000, "😀" * 8000])
def test_text_beyond_ascii_does_not_make_messages_larger_than_kafka_takes(text: str) -> None:
    one = document(0, 1, url=text, note=text)
    some = [replace(one, fetched_at=text[:1000], id=one.id._replace(offset=offset)) for offset in range(60)]
    messages = list(write_registrations(BATCH, range(500), some, "plan"))
    assert values(read_all(messages)) == [plain(each) for each in some]
    assert max(map(len, messages)) < KAFKA_MESSAGE_BYTES


@given(sizes=st.lists(st.integers(1, BATCH_BYTES), max_size=20))
def test_a_cut_comes_as_soon_as_a_message_is_full(sizes: list[int]) -> None:
    runs = [list(run) for run in split(sizes, lambda size: size)]
    assert [size for run in runs for size in run] == sizes
    for number, run in enumerate(runs):
        assert sum(run[:-1]) <= BATCH_BYTES
        assert sum(run) > BATCH_BYTES or number == len(runs) - 1


# Skipped pages


@given(some=st.lists(skipped_pages, max_size=5))
def test_skipped_pages_come_back(some: list[SkippedPage]) -> None:
    assert read_skipped(body_of(write_skipped(some), "skipped")) == some


@pytest.mark.parametrize("pages", [None, 5, [5], [[1, 2, 3]], [[1, 2, 3, "u", None, "r", "one more"]]])
def test_rows_that_are_no_skipped_pages_are_corrupt(pages: Any) -> None:
    with pytest.raises(Corrupt, match="expected skipped pages"):
        read_skipped({"pages": pages})
    with pytest.raises(Corrupt):
        read_skipped({})


# What cannot be read


@pytest.mark.parametrize("value", [None, 5, "abc", [1, 2], [1, 2, 3, 4], [1, 2, "3"], [1.0, 2, 3], np.zeros(3)])
def test_a_batch_that_is_not_three_whole_numbers_is_corrupt(value: Any) -> None:
    with pytest.raises(Corrupt, match="expected a batch as partition, first and last offset"):
        batch_of(value)


@pytest.mark.parametrize("value", [None, 5, [1, 2], np.zeros(2), np.zeros(2, np.int32), np.zeros((2, 2), np.int64)])
def test_expected_partitions_of_another_type_are_corrupt(value: Any) -> None:
    with pytest.raises(Corrupt, match="expected shard partitions as int64"):
        read_registrations(body(expected=value))


@pytest.mark.parametrize("column", COLUMNS)
def test_a_missing_column_is_corrupt(column: str) -> None:
    short = body()
    del short[column]
    with pytest.raises(Corrupt, match="expected the columns of documents") as raised:
        read_registrations(short)
    assert str(sorted(short)) in str(raised.value)


@pytest.mark.parametrize("column", [name for name in COLUMNS if name != "checksums"])
def test_a_column_of_another_length_is_corrupt(column: str) -> None:
    whole = body()[column]
    for changed in (whole[:1], whole[:0], [*whole, *whole] if isinstance(whole, list) else np.concatenate([whole] * 2)):
        with pytest.raises(Corrupt):
            read_registrations(body(**{column: changed}))


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("id", np.zeros((2, 2), np.int64)),
        ("id", np.zeros(6, np.int64)),
        ("id", np.zeros((2, 3))),
        ("checksums", np.zeros((2, 47), np.uint8)),
        ("checksums", np.zeros((2, 48), np.uint16)),
        ("fingerprint", np.zeros(2, np.int64)),
        ("fingerprint", np.zeros(2)),
        ("size", np.array([1.5, np.nan])),
        ("words", np.array([-1, 1], np.int64)),
        ("words", np.zeros(2, np.uint64)),
        ("sketch", np.zeros(4)),
        ("url", [None, "b"]),
        ("url", [1, 2]),
        ("url", np.array([1, 2])),
        ("fetched_at", [b"x", None]),
        ("fetched_at", [np.zeros(3), None]),
        ("note", [{"a": 1}, []]),
    ],
)
def test_a_column_of_another_type_is_corrupt(column: str, value: Any) -> None:
    with pytest.raises(Corrupt, match="expected"):
        read_registrations(body(**{column: value}))


def test_sketches_of_another_length_than_said_are_corrupt() -> None:
    words = body()["words"]
    with pytest.raises(Corrupt, match=rf"expected sketches of {words.sum() + 1} words, got {words.sum()}"):
        read_registrations(body(words=words + np.array([1, 0])))


@given(changes=st.dictionaries(st.sampled_from(FUZZED), anything, max_size=4))
@example(changes={"url": "ab", "fetched_at": "cd"})
def test_whatever_the_columns_are_nothing_but_wire_errors_is_raised(changes: dict[str, Any]) -> None:
    try:
        got = read_registrations(body(**changes))
    except WireError:
        return
    # What passes can be sent again, and so be stored.
    [again] = write_registrations(got.batch, got.expected, got.documents, "plan")
    assert values(read_all([again])) == values([got])
