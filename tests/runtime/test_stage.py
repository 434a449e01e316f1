import gc
import weakref
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.errors import Corrupt, InvalidPage, LogError, RecordError, StateError
from neardup.log import PlainRecord, Record
from neardup.messages.dead_letters import Rejection
from neardup.runtime.stage import decoded


def record(offset: int, value: bytes | None) -> PlainRecord:
    return PlainRecord("pages", 0, offset, 0, None, value, ())


def number(record: Record) -> int:
    """Decode digits. Any other value is a bad record."""
    if record.value is None:
        raise InvalidPage("no value")
    try:
        return int(record.value)
    except ValueError as error:
        raise Corrupt("not a number") from error


def test_each_record_is_returned_with_its_decoded_value() -> None:
    records = [record(0, b"7"), record(1, b"8")]
    assert decoded(records, number) == ([(records[0], 7), (records[1], 8)], [])


def test_a_bad_record_is_rejected_and_the_others_are_decoded() -> None:
    records = [record(0, b"7"), record(1, b"x"), record(2, b"8"), record(3, None)]
    good, rejected = decoded(records, number)
    assert good == [(records[0], 7), (records[2], 8)]
    assert [rejection.record for rejection in rejected] == [records[1], records[3]]
    assert [type(rejection.error) for rejection in rejected] == [Corrupt, InvalidPage]
    assert [str(rejection.error) for rejection in rejected] == ["not a number", "no value"]


def test_a_rejection_carries_the_error_that_was_raised() -> None:
    error = RecordError("this one")

    def refuse(record: Record) -> int:
        raise error

    bad = record(0, b"")
    assert decoded([bad], refuse) == ([], [Rejection(bad, error)])


def test_a_rejection_keeps_nothing_alive_but_its_record() -> None:
    """A rejection must not rely on the garbage collector: decoded records are many times as large as encoded ones."""
    made: list[weakref.ref[Any]] = []

    def decode(record: Record) -> Any:
        array = np.zeros(10)
        made.append(weakref.ref(array))
        if record.value == b"bad":
            try:
                raise ValueError("no good")
            except ValueError as error:
                raise Corrupt("bad") from error
        return array

    gc.disable()
    try:
        good, rejected = decoded([record(0, b"good"), record(1, b"bad")], decode)
        assert len(good) == 1
        del good
        assert [each() is None for each in made] == [True, True]
    finally:
        gc.enable()
    assert [str(each.error) for each in rejected] == ["bad"]


@pytest.mark.parametrize("error", [LogError("x"), StateError("x"), ValueError("x"), KeyError("x")])
def test_any_other_error_is_not_swallowed(error: Exception) -> None:
    def fail(record: Record) -> int:
        raise error

    with pytest.raises(type(error)) as raised:
        decoded([record(0, b"1")], fail)
    assert raised.value is error


def test_no_records_decode_to_nothing() -> None:
    assert decoded([], number) == ([], [])


@given(values=st.lists(st.none() | st.sampled_from([b"1", b"22", b"x"])))
def test_every_record_is_returned_once_and_in_order(values: list[bytes | None]) -> None:
    records = [record(offset, value) for offset, value in enumerate(values)]
    good, rejected = decoded(records, number)
    assert [each for each, _ in good] == [each for each in records if each.value in (b"1", b"22")]
    assert [each for each, _ in rejected] == [each for each in records if each.value not in (b"1", b"22")]
