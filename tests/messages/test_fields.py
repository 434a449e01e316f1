"""Tests of the validators: valid values come back unchanged, and no other value passes."""

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from neardup.errors import Corrupt, WrongPlan
from neardup.messages.fields import (
    batch_of,
    document_of,
    found_by_of,
    number_of,
    optional_text_of,
    require_plan,
    text_of,
    word_of,
)
from neardup.types import BatchId, DocumentId
from tests.support.documents import anything, batches, places, word

NO_THREE_NUMBERS = [
    None, 5, "abc", b"abc", [], [1, 2], [1, 2, 3, 4], [1, 2, "3"], [1.0, 2, 3], [1, 2, None], [1, 2, float("inf")],
    [2**63, 0, 0], [0, 2**63, 0], [0, 0, 2**63], [-(2**63) - 1, 0, 0], {1: 1, 2: 2, 3: 3}, np.zeros(3, np.int64),
]  # fmt: skip
NO_WORD = [None, -1, 2**64, 1.0, float("nan"), "x", b"x", [1], np.zeros(1, np.uint64)]
NO_TEXT = [5, b"text", ["text"], True, np.zeros(2)]


@given(batch=batches)
def test_a_batch_is_three_64_bit_numbers(batch: BatchId) -> None:
    assert batch_of(list(batch)) == batch


@given(place=places)
def test_a_document_is_three_64_bit_numbers(place: DocumentId) -> None:
    assert document_of(list(place)) == place


@pytest.mark.parametrize("value", NO_THREE_NUMBERS, ids=repr)
def test_anything_else_is_neither_a_batch_nor_a_document(value: Any) -> None:
    with pytest.raises(Corrupt, match="expected a batch as partition, first and last offset, got "):
        batch_of(value)
    with pytest.raises(Corrupt, match="expected a document as timestamp, partition and offset, got "):
        document_of(value)


@given(value=word)
def test_a_fingerprint_is_a_64_bit_number(value: int) -> None:
    assert word_of(value) == value


@pytest.mark.parametrize("value", NO_WORD, ids=repr)
def test_anything_else_is_not_a_fingerprint(value: Any) -> None:
    with pytest.raises(Corrupt, match="expected a number of 64 bits, got "):
        word_of(value)


@pytest.mark.parametrize("value", NO_TEXT, ids=repr)
def test_only_text_is_text_and_only_optional_text_may_be_null(value: Any) -> None:
    assert text_of("é") == optional_text_of("é") == "é"
    assert optional_text_of(None) is None
    with pytest.raises(Corrupt, match="expected text, got None"):
        text_of(None)
    for check in (text_of, optional_text_of):
        with pytest.raises(Corrupt, match="expected text, got "):
            check(value)


@pytest.mark.parametrize("value", [0, 0.5, -3])
def test_whole_and_other_numbers_are_numbers(value: float) -> None:
    assert number_of(value) == value


@pytest.mark.parametrize("value", [None, "1", b"1", [1], np.zeros(1)], ids=repr)
def test_anything_else_is_not_a_number(value: Any) -> None:
    with pytest.raises(Corrupt, match="expected a number, got "):
        number_of(value)


@pytest.mark.parametrize(("value", "mask"), [(b"", 0), (b"\x05", 5), (b"\x00\x01", 256), (b"\xff" * 30, 2**240 - 1)])
def test_a_mask_is_read_from_its_bytes(value: bytes, mask: int) -> None:
    assert found_by_of(value) == mask


@pytest.mark.parametrize("value", [None, 5, "text", [1, 2], np.zeros(2, np.uint8)], ids=repr)
def test_anything_else_is_not_a_mask(value: Any) -> None:
    with pytest.raises(Corrupt, match="expected bytes, got "):
        found_by_of(value)


def test_a_message_of_the_same_plan_passes() -> None:
    require_plan({"plan": "one"}, "one")


@pytest.mark.parametrize(
    "body",
    [
        {}, {"plan": None}, {"plan": "another"}, {"plan": 5}, {"plan": b"one"}, {"plan": ["one"]},
        {"plan": np.zeros(2)}, {"plan": np.array("one")},
    ],
    ids=repr,
)  # fmt: skip
def test_a_message_of_another_plan_is_refused_and_both_plans_are_named(body: dict[str, Any]) -> None:
    with pytest.raises(WrongPlan, match="expected a message made with plan one, got ") as raised:
        require_plan(body, "one")
    assert repr(body.get("plan")) in str(raised.value)


@given(plan=anything)
def test_any_plan_but_ours_is_refused(plan: Any) -> None:
    with pytest.raises(WrongPlan):
        require_plan({"plan": plan}, "our plan")


@pytest.mark.parametrize(
    "check",
    [batch_of, document_of, word_of, text_of, optional_text_of, number_of, found_by_of],
    ids=lambda f: f.__name__,
)
@given(value=anything)
def test_any_value_raises_only_corrupt(check: Callable[[Any], Any], value: Any) -> None:
    with contextlib.suppress(Corrupt):
        check(value)
