import contextlib
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from neardup.errors import Corrupt, InvalidPage, NotOurs, WireError, WrongKind
from neardup.log import PlainRecord
from neardup.messages.dead_letters import Rejection, dead_letters, decode, encode
from neardup.settings import Settings
from neardup.types import DeadLetter
from tests.support.messages import encode as encode_message

int64 = st.integers(-(2**63), 2**63 - 1)
utf8 = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
letters = st.builds(
    DeadLetter,
    topic=utf8,
    partition=int64,
    offset=int64,
    timestamp=int64,
    key=st.none() | st.binary(),
    value=st.none() | st.binary(),
    headers=st.lists(st.tuples(utf8, st.binary()), max_size=3).map(tuple),
    stage=utf8,
    reason=utf8,
    detail=utf8,
)

LETTER = DeadLetter(
    topic="pages",
    partition=1,
    offset=2,
    timestamp=3,
    key=b"k",
    value=b"v",
    headers=(("h", b"1"), ("h", b"2")),
    stage="featurizer",
    reason="invalid-page",
    detail="why",
)


def body(**changes: Any) -> dict[Any, Any]:
    fields = {name: getattr(LETTER, name) for name in DeadLetter.__slots__}
    return fields | {"headers": [["h", b"1"], ["h", b"2"]]} | changes


def record(value: bytes | None = b"v", headers: Any = (("h", b"1"),)) -> PlainRecord:
    return PlainRecord("pages", 1, 2, 3, b"k", value, headers)


@given(letter=letters)
def test_a_dead_letter_is_read_back_unchanged(letter: DeadLetter) -> None:
    assert decode(encode(letter)) == letter


def test_a_dead_letter_has_the_record_its_place_and_the_reason() -> None:
    [output] = dead_letters([Rejection(record(), InvalidPage("no url"))], "featurizer", "dead")
    assert output.topic == "dead"
    assert decode(output.value) == DeadLetter(
        topic="pages",
        partition=1,
        offset=2,
        timestamp=3,
        key=b"k",
        value=b"v",
        headers=(("h", b"1"),),
        stage="featurizer",
        reason="invalid-page",
        detail="no url",
    )


def test_every_rejection_becomes_one_output_in_order() -> None:
    rejected = [
        Rejection(record(b"1"), InvalidPage("a")),
        Rejection(record(None), Corrupt("b")),
        Rejection(record(b"3"), NotOurs("c")),
    ]
    got = [decode(output.value) for output in dead_letters(rejected, "aggregator", "dead")]
    assert [(letter.value, letter.reason, letter.detail) for letter in got] == [
        (b"1", "invalid-page", "a"),
        (None, "corrupt", "b"),
        (b"3", "not-ours", "c"),
    ]


def test_without_rejections_nothing_is_sent() -> None:
    assert dead_letters([], "featurizer", "dead") == []


def test_a_header_without_a_value_can_be_read_back() -> None:
    # Kafka has null header values, and its client passes them on.
    [output] = dead_letters([Rejection(record(headers=(("h", None),)), InvalidPage("a"))], "featurizer", "dead")
    letter = decode(output.value)
    assert [name for name, _ in letter.headers] == ["h"]
    assert letter.value == b"v"


@pytest.mark.parametrize("size", [Settings().max_message_bytes, 15 * 2**20])
def test_a_record_as_large_as_the_settings_allow_becomes_a_dead_letter(size: int) -> None:
    Settings(max_message_bytes=size)
    largest = record(bytes(size))
    [output] = dead_letters([Rejection(largest, InvalidPage("a"))], "featurizer", "dead")
    assert decode(output.value).value == largest.value


def test_a_long_error_text_is_truncated() -> None:
    """The letter would otherwise not fit its topic, and the worker would stop."""
    error = Corrupt(f"expected a batch, got {[[]] * 5_000_000!r}")
    [output] = dead_letters([Rejection(record(), error)], "shard", "dead")
    assert output.value is not None
    assert len(output.value) < 3000
    assert decode(output.value).detail.startswith("expected a batch, got [[], [],")


@pytest.mark.parametrize("name", DeadLetter.__slots__)
def test_a_missing_field_is_corrupt(name: str) -> None:
    short = body()
    del short[name]
    with pytest.raises(Corrupt, match="expected the fields of a dead letter, got"):
        decode(encode_message("dead-letter", short))


def test_an_unknown_field_is_corrupt() -> None:
    with pytest.raises(Corrupt, match=r"expected the fields of a dead letter, got .*'extra'"):
        decode(encode_message("dead-letter", body(extra=1)))


@pytest.mark.parametrize("headers", [None, 5, [1], ["x"], [["only"]], [["a", b"b", b"c"]], [["a", "text"]]])
def test_malformed_headers_are_corrupt(headers: Any) -> None:
    with pytest.raises(Corrupt, match="expected the fields of a dead letter"):
        decode(encode_message("dead-letter", body(headers=headers)))


@pytest.mark.parametrize("number", [2**62, 2**64 - 1])
def test_a_number_in_place_of_a_header_value_is_corrupt(number: int) -> None:
    with pytest.raises(Corrupt):
        decode(encode_message("dead-letter", body(headers=[["h", number]])))


@pytest.mark.parametrize("extra", [b"extra", b""])
def test_names_that_are_not_text_are_corrupt(extra: bytes) -> None:
    with pytest.raises(Corrupt, match="expected"):
        decode(encode_message("dead-letter", body() | {extra: 1}))


def test_another_kind_of_message_is_refused() -> None:
    with pytest.raises(WrongKind, match="expected a 'dead-letter' message"):
        decode(encode_message("registrations", body()))


@pytest.mark.parametrize("value", [None, b"", b"{}"])
def test_a_foreign_value_is_refused(value: bytes | None) -> None:
    with pytest.raises(NotOurs):
        decode(value)


# Whole numbers are small here because bytes(n) allocates n bytes; larger ones are tested above.
plain = st.none() | st.booleans() | st.integers(-5, 1000) | st.text(max_size=5) | st.binary(max_size=5)
values = st.recursive(plain, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3))
names = st.sampled_from(DeadLetter.__slots__) | st.text(max_size=4) | st.binary(max_size=4)


@given(changes=st.dictionaries(names, values, max_size=5), whole=st.booleans())
@example(changes={b"x": 1}, whole=True)
def test_any_body_raises_only_wire_errors(changes: dict[Any, Any], whole: bool) -> None:
    data = encode_message("dead-letter", {**(body() if whole else {}), **changes})
    with contextlib.suppress(WireError):
        decode(data)
