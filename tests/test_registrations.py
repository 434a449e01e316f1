from collections import Counter
from hashlib import blake2b
from typing import Any

import msgpack
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from neardup import wire
from neardup.errors import Corrupt, WireError, WrongKind
from neardup.registrations import CHECKSUM_BYTES, owner_of, read_registrations, write_registrations
from neardup.types import Document, DocumentId

BATCH_BYTES = 512 * 1024
KAFKA_DEFAULT_MESSAGE_BYTES = 1_048_588

int64 = st.integers(-(2**63), 2**63 - 1)
utf8 = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
documents = st.builds(
    Document,
    id=st.builds(DocumentId, int64, int64, int64),
    url=utf8,
    fetched_at=st.none() | utf8,
    checksum=st.binary(min_size=CHECKSUM_BYTES, max_size=CHECKSUM_BYTES),
    size=int64,
)


def document(offset: int, url: str = "https://example.org/", fetched_at: str | None = None) -> Document:
    checksum = blake2b(offset.to_bytes(8, "little"), digest_size=CHECKSUM_BYTES).digest()
    return Document(DocumentId(1_700_000_000_000 + offset, 0, offset), url, fetched_at, checksum, 100)


def body(**changes: Any) -> dict[str, Any]:
    """The columns of two documents, some of them replaced."""
    return {
        "id": np.array([[1, 0, 0], [2, 0, 1]], np.int64),
        "checksum": np.zeros((2, CHECKSUM_BYTES), np.uint8),
        "size": np.array([3, 4], np.int64),
        "url": ["a", "b"],
        "fetched_at": [None, "now"],
    } | changes


def read_all(messages: list[bytes]) -> list[Document]:
    return [each for message in messages for each in read_registrations(message)]


# Round trip and splitting


@given(some=st.lists(documents, max_size=20))
def test_documents_come_back_in_order(some: list[Document]) -> None:
    messages = list(write_registrations(some))
    assert len(messages) == (1 if some else 0)
    got = read_all(messages)
    assert got == some
    for each in got:
        assert isinstance(each.id, DocumentId)
        assert [type(value) for value in each.id] == [int, int, int]
        assert type(each.size) is int
        assert type(each.checksum) is bytes


def test_no_documents_need_no_message() -> None:
    assert list(write_registrations([])) == []


@pytest.mark.parametrize("length", [10, 300, 8192])
def test_many_documents_are_split_into_messages_of_about_512_kb(length: int) -> None:
    url = "u" * length
    some = [document(offset, url) for offset in range(3 * BATCH_BYTES // length // 2 + 5)]
    messages = list(write_registrations(some))
    assert len(messages) > 1
    assert read_all(messages) == some
    for message in messages:
        assert len(message) <= BATCH_BYTES + length + 1024
    for message in messages[:-1]:
        # The count of bytes a document is an estimate from above, most of all for short urls.
        assert len(message) > BATCH_BYTES / 3


@pytest.mark.parametrize("char", ["é", "日", "😀"])
def test_urls_beyond_ascii_do_not_make_messages_larger_than_kafka_takes(char: str) -> None:
    some = [document(offset, char * 8000) for offset in range(150)]
    messages = list(write_registrations(some))
    assert read_all(messages) == some
    assert max(map(len, messages)) <= KAFKA_DEFAULT_MESSAGE_BYTES


def test_long_fetch_times_do_not_make_messages_larger_than_kafka_takes() -> None:
    some = [document(offset, fetched_at="2024-01-01T00:00:00Z" + " " * 10_000) for offset in range(150)]
    messages = list(write_registrations(some))
    assert read_all(messages) == some
    assert max(map(len, messages)) <= KAFKA_DEFAULT_MESSAGE_BYTES


# Ownership


@pytest.mark.parametrize(
    ("checksum", "owners", "owner"),
    [
        (bytes(16), 4, 0),
        (bytes([1]) + bytes(15), 4, 1),
        (bytes([0, 1]) + bytes(14), 7, 256 % 7),
        (bytes(8) + b"\xff" * 8, 4, 0),
        (b"\xff" * 16, 1000, (2**64 - 1) % 1000),
        (bytes(range(16)), 10_007, 0x0706050403020100 % 10_007),
        (b"anything of 16 b", 1, 0),
    ],
)
def test_the_owner_of_a_checksum_never_changes(checksum: bytes, owners: int, owner: int) -> None:
    assert owner_of(checksum, owners) == owner


@pytest.mark.parametrize("owners", [2, 4, 7, 16])
def test_documents_are_spread_evenly_over_owners(owners: int) -> None:
    count = 2000 * owners
    load = Counter(owner_of(document(offset).checksum, owners) for offset in range(count))
    assert sorted(load) == list(range(owners))
    # 2000 ± 45 is one standard deviation; five of them never happen by chance.
    assert max(abs(held - 2000) for held in load.values()) < 225


# What cannot be read


@pytest.mark.parametrize("column", ["id", "checksum", "size", "url", "fetched_at"])
def test_a_missing_column_is_corrupt(column: str) -> None:
    short = body()
    del short[column]
    with pytest.raises(Corrupt, match="expected the columns of registrations") as raised:
        read_registrations(wire.encode("registrations", short))
    assert str(sorted(short)) in str(raised.value)


@pytest.mark.parametrize("column", ["id", "checksum", "size", "url", "fetched_at"])
def test_a_column_of_another_length_is_corrupt(column: str) -> None:
    for changed in (body()[column][:1], [*body()["url"], "c"] if column == "url" else body()[column][:0]):
        with pytest.raises(Corrupt):
            read_registrations(wire.encode("registrations", body(**{column: changed})))


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("id", np.zeros((2, 2), np.int64)),
        ("id", np.zeros((2, 4), np.int64)),
        ("id", np.zeros(2, np.int64)),
        ("checksum", np.zeros((2, 15), np.uint8)),
        ("checksum", np.zeros((2, 17), np.uint8)),
        ("checksum", np.zeros((2, 16), np.uint16)),
        ("checksum", np.zeros(32, np.uint8)),
    ],
)
def test_a_table_with_other_columns_is_corrupt(column: str, value: Any) -> None:
    with pytest.raises(Corrupt, match="expected"):
        read_registrations(wire.encode("registrations", body(**{column: value})))


@pytest.mark.parametrize("column", ["id", "checksum", "size"])
@pytest.mark.parametrize("value", [None, 5, "ab", b"ab", [1, 2], [[1, 2, 3], [4, 5, 6]], {"a": 1, "b": 2}])
def test_a_column_that_should_be_an_array_and_is_not_is_corrupt(column: str, value: Any) -> None:
    with pytest.raises(Corrupt):
        read_registrations(wire.encode("registrations", body(**{column: value})))


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("id", np.array([[np.nan, 0, 0], [2, 0, 1]])),
        ("size", np.array([1.5, np.nan])),
        ("size", np.zeros((2, 2), np.int64)),
        ("url", None),
        ("url", [None, "b"]),
        ("url", [1, 2]),
        ("url", [["a"], {"b": 1}]),
        ("url", np.array([1, 2])),
        ("fetched_at", None),
        ("fetched_at", [1, 2]),
        ("fetched_at", [b"x", None]),
        ("fetched_at", [{"a": 1}, []]),
        # Not even msgpack can hold an array, so this one would stop the aggregator.
        ("fetched_at", [np.zeros(3), None]),
    ],
)
def test_a_column_of_another_type_is_corrupt(column: str, value: Any) -> None:
    with pytest.raises(Corrupt):
        read_registrations(wire.encode("registrations", body(**{column: value})))


@pytest.mark.parametrize("names", [{"a": 1, b"b": 2}, {b"id": 1, b"url": 2}])
def test_names_that_are_not_text_are_corrupt(names: dict[Any, Any]) -> None:
    with pytest.raises(Corrupt, match="expected"):
        read_registrations(wire.encode("registrations", names))


def test_another_kind_of_message_is_refused() -> None:
    with pytest.raises(WrongKind, match="expected a 'registrations' message"):
        read_registrations(wire.encode("dead-letter", body()))


@pytest.mark.parametrize("value", [None, b"", b"<html>"])
def test_something_else_is_refused(value: bytes | None) -> None:
    with pytest.raises(WireError):
        read_registrations(value)


plain = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text() | st.binary()
dtypes = st.sampled_from([np.dtype(code) for code in ("u1", "u2", "u8", "i8", "f4", "f8")])
shapes = st.tuples(st.integers(0, 3)) | st.tuples(st.integers(0, 3), st.sampled_from([1, 3, CHECKSUM_BYTES]))
arrays = dtypes.flatmap(lambda dtype: hnp.arrays(dtype, shapes))
columns = arrays | plain | st.lists(plain | arrays, max_size=3) | st.dictionaries(st.text(), plain, max_size=3)
names = st.sampled_from(["id", "checksum", "size", "url", "fetched_at"]) | st.text(max_size=4) | st.binary(max_size=4)


@given(changes=st.dictionaries(names, columns, max_size=6), whole=st.booleans())
@example(changes={"url": 5, b"x": 1}, whole=True)
def test_whatever_the_body_is_nothing_but_wire_errors_is_raised(changes: dict[Any, Any], whole: bool) -> None:
    data = wire.encode("registrations", {**(body() if whole else {}), **changes})
    try:
        got = read_registrations(data)
    except WireError:
        return
    # What passes is what the aggregator can store.
    for each in got:
        assert len(each.checksum) == CHECKSUM_BYTES
        msgpack.packb([each.id, each.url, each.fetched_at, each.size])
