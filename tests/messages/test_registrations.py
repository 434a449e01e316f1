"""Tests of registrations and skipped pages: round trips, splitting into messages, and rejection of invalid ones."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from neardup.errors import Corrupt, WireError
from neardup.messages.document_columns import BATCH_BYTES
from neardup.messages.registrations import Registrations, read_registrations, read_skipped, write_skipped
from neardup.types import BatchId, Document, DocumentId, SkippedPage
from tests.support.documents import (
    KAFKA_MESSAGE_BYTES,
    LONG_URLS,
    M,
    anything,
    batches,
    body_of,
    document,
    documents,
    places,
    plain,
    registrations_of,
    utf8,
)

BATCH = BatchId(2, 10, 19)
PARTITIONS = 500
COLUMNS = ("id", "url", "fetched_at", "fingerprint", "checksums", "size", "sketch", "words", "note")
FUZZED = [*COLUMNS, "batch", "expected"]
skipped_pages = st.builds(SkippedPage, id=places, url=utf8, fetched_at=st.none() | utf8, reason=utf8)


def body(**changes: Any) -> dict[str, Any]:
    """Return the body of a message with two documents and some columns replaced."""
    [message] = registrations_of([document(0, 1), document(1, 2, note="cut")], batch=BATCH, expected=[0, 3])
    return body_of(message, "registrations") | changes


def read(some: dict[str, Any]) -> Registrations:
    return read_registrations(some, PARTITIONS, M)


def read_all(messages: list[bytes]) -> list[Registrations]:
    return [read(body_of(message, "registrations")) for message in messages]


def values(registrations: list[Registrations]) -> list[tuple[Any, ...]]:
    return [plain(each) for some in registrations for each in some.documents]


# Round trip and splitting


@given(
    batch=batches,
    expected=st.lists(st.integers(0, PARTITIONS - 1), min_size=1, max_size=5),
    some=st.lists(documents, max_size=10),
)
def test_documents_are_read_back_in_order_with_the_shards_that_will_answer(
    batch: BatchId, expected: list[int], some: list[Document]
) -> None:
    messages = registrations_of(some, batch=batch, expected=expected)
    assert len(messages) == (1 if some else 0)
    got = read_all(messages)
    assert values(got) == [plain(each) for each in some]
    for each in got:
        assert each.batch == batch
        assert each.expected == tuple(expected)
    assert {body_of(message, "registrations")["plan"] for message in messages} <= {"plan"}


def test_a_document_does_not_keep_its_message_in_memory() -> None:
    [registrations] = read_all(registrations_of([document(0, 1)]))
    assert registrations.documents[0].sketch.base is None


@pytest.mark.parametrize("length", [10, 300, 8192])
def test_many_documents_are_split_into_messages_of_about_512_kb(length: int) -> None:
    one = document(0, 1, url="u" * length)
    bytes_each = one.sketch.nbytes + length + 120
    some = [replace(one, id=one.id._replace(offset=offset)) for offset in range(3 * BATCH_BYTES // bytes_each)]
    messages = registrations_of(some, batch=BATCH, expected=[1, 2])
    assert len(messages) > 1
    got = read_all(messages)
    assert values(got) == [plain(each) for each in some]
    assert {(each.batch, each.expected) for each in got} == {(BATCH, (1, 2))}
    assert max(map(len, messages)) <= BATCH_BYTES + bytes_each + 1024
    for message in messages[:-1]:
        # The estimate of bytes per document is an upper bound: a character may take four bytes.
        assert len(message) > BATCH_BYTES / 5


@pytest.mark.parametrize("text", ["é" * 8000, "日" * 8000, "😀" * 8000])
def test_messages_with_text_beyond_ascii_stay_below_the_limit_of_kafka(text: str) -> None:
    one = document(0, 1, url=text, note=text)
    some = [replace(one, fetched_at=text[:1000], id=one.id._replace(offset=offset)) for offset in range(60)]
    messages = registrations_of(some, expected=range(PARTITIONS))
    assert values(read_all(messages)) == [plain(each) for each in some]
    assert max(map(len, messages)) < KAFKA_MESSAGE_BYTES


# Skipped pages


@given(some=st.lists(skipped_pages, max_size=5))
def test_skipped_pages_are_read_back(some: list[SkippedPage]) -> None:
    assert [each for message in write_skipped(some) for each in read_skipped(body_of(message, "skipped")).pages] == some


@pytest.mark.parametrize("url", LONG_URLS)
def test_skipped_pages_with_long_urls_stay_below_the_limit_of_kafka(url: str) -> None:
    some = [SkippedPage(DocumentId(n, 0, n), url, None, "too short") for n in range(200)]
    messages = list(write_skipped(some))
    assert max(map(len, messages)) <= BATCH_BYTES + len(url.encode()) + 1024 < KAFKA_MESSAGE_BYTES
    assert [each for message in messages for each in read_skipped(body_of(message, "skipped")).pages] == some


@pytest.mark.parametrize(
    "pages",
    [
        None, 5, [5], [[1, 2, 3]], [[1, 2, 3, "u", None, "r", "one more"]], [[1, 2, 3, 5, None, "r"]],
        [[1, 2, 3, "u", 5, "r"]], [[1, 2, 3, "u", None, None]], [[2**63, 2, 3, "u", None, "r"]],
        [[1, "2", 3, "u", None, "r"]], [[1, 2, 3.0, "u", None, "r"]],
    ],
)  # fmt: skip
def test_invalid_rows_of_skipped_pages_are_corrupt(pages: Any) -> None:
    with pytest.raises(Corrupt, match="expected"):
        read_skipped({"pages": pages})


def test_a_message_without_skipped_pages_is_corrupt() -> None:
    with pytest.raises(Corrupt, match="expected skipped pages"):
        read_skipped({})


@given(pages=anything | st.lists(st.lists(anything, min_size=6, max_size=6), max_size=3))
def test_any_skipped_pages_raise_only_corrupt(pages: Any) -> None:
    try:
        got = read_skipped({"pages": pages}).pages
    except Corrupt:
        return
    assert [each for message in write_skipped(got) for each in read_skipped(body_of(message, "skipped")).pages] == got


# Unreadable messages


@pytest.mark.parametrize("batch", [None, [1, 2], [0, 1, 2**63], [0, 1.0, 2]])
def test_an_invalid_batch_is_corrupt(batch: Any) -> None:
    with pytest.raises(Corrupt, match="expected a batch as partition, first and last offset"):
        read(body(batch=batch))


@pytest.mark.parametrize("value", [None, 5, [1, 2], np.zeros(2), np.zeros(2, np.int32), np.zeros((2, 2), np.int64)])
def test_expected_partitions_of_another_type_are_corrupt(value: Any) -> None:
    with pytest.raises(Corrupt, match="expected one or more shard partitions as int64"):
        read(body(expected=value))


def test_registrations_without_an_expected_shard_are_corrupt() -> None:
    with pytest.raises(Corrupt, match="expected one or more shard partitions as int64"):
        read(body(expected=np.empty(0, np.int64)))


@pytest.mark.parametrize("expected", [[-1], [PARTITIONS], [0, PARTITIONS, 1], [-(2**63), 0], [2**63 - 1]], ids=repr)
def test_expected_partitions_outside_the_plan_are_corrupt(expected: list[int]) -> None:
    with pytest.raises(Corrupt) as raised:
        read(body(expected=np.array(expected, np.int64)))
    assert str(raised.value) == f"expected shard partitions below {PARTITIONS}, got {expected}"


@pytest.mark.parametrize("column", COLUMNS)
def test_a_missing_column_is_corrupt(column: str) -> None:
    short = body()
    del short[column]
    with pytest.raises(Corrupt, match="expected the columns of documents") as raised:
        read(short)
    assert str(sorted(short)) in str(raised.value)


@pytest.mark.parametrize("column", COLUMNS)
def test_a_column_of_another_length_is_corrupt(column: str) -> None:
    whole = body()[column]
    for changed in (whole[:1], whole[:0], [*whole, *whole] if isinstance(whole, list) else np.concatenate([whole] * 2)):
        with pytest.raises(Corrupt):
            read(body(**{column: changed}))


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
        read(body(**{column: value}))


def test_sketches_that_contradict_their_lengths_are_corrupt() -> None:
    words = body()["words"]
    with pytest.raises(Corrupt, match=rf"expected sketches of {words.sum() + 1} words, got {words.sum()}"):
        read(body(words=words + np.array([1, 0])))


@pytest.mark.parametrize("rows", [0, 1, 3])
def test_another_number_of_checksums_than_documents_is_corrupt(rows: int) -> None:
    with pytest.raises(Corrupt, match=f"expected 2 rows of checksums, got {rows}"):
        read(body(checksums=np.zeros((rows, 48), np.uint8)))


HEADER = M << 8
MIPS = [0] * (M // 8)
NO_SKETCHES = {
    "empty": [],
    "no values": [HEADER],
    "one word too few": [HEADER, *MIPS[1:]],
    "one word too many": [HEADER, *MIPS, 7],
    "no sample": [HEADER | 1 << 32, *MIPS],
    "all bits": [2**64 - 1],
    "a header without values": [0],
    "one value": [1 << 8, 5],
    "one value too many": [M + 1 << 8, *MIPS, 0],
}


def sketched(*sketches: list[int]) -> dict[str, Any]:
    """Return the body of a message with two documents that have these sketches."""
    words = np.array([len(each) for each in sketches], np.int64)
    return body(sketch=np.array([word for each in sketches for word in each], np.uint64), words=words)


@pytest.mark.parametrize("sketch", NO_SKETCHES.values(), ids=NO_SKETCHES.keys())
def test_a_sketch_of_a_wrong_length_is_corrupt(sketch: list[int]) -> None:
    good = [HEADER, *MIPS]
    assert len(read(sketched(good, good)).documents) == 2
    for two in ((sketch, good), (good, sketch)):
        with pytest.raises(Corrupt, match=f"expected a packed sketch with {M} MIPs values for every document"):
            read(sketched(*two))


@given(changes=st.dictionaries(st.sampled_from(FUZZED), anything, max_size=4))
@example(changes={"url": "ab", "fetched_at": "cd"})
def test_any_columns_raise_only_wire_errors(changes: dict[str, Any]) -> None:
    try:
        got = read(body(**changes))
    except WireError:
        return
    # Documents that pass validation can be sent again, and can therefore be stored.
    again = registrations_of(got.documents, batch=got.batch, expected=got.expected)
    assert values(read_all(again)) == values([got])
