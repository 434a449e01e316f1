"""Tests of orders to owners: round trips, and rejection of invalid ones."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.errors import Corrupt
from neardup.messages.orders import Expire, Forget, orders, read_order
from tests.support.documents import (
    anything,
    body_of,
    int64,
)


@pytest.mark.parametrize("order", [Forget("http://é/"), Expire(0), Expire(2**40)])
def test_an_order_reaches_every_owner_unchanged(order: Forget | Expire) -> None:
    outputs = orders(order, "inbox", 3)
    assert [(output.topic, output.partition) for output in outputs] == [("inbox", 0), ("inbox", 1), ("inbox", 2)]
    for output in outputs:
        assert read_order(body_of(output.value, "control")) == order


@pytest.mark.parametrize("body", [{}, {"forget": 5}, {"forget": None}, {"expire": "now"}, {"expire": 1.5}, {"drop": 1}])
def test_other_orders_are_corrupt(body: dict[str, Any]) -> None:
    with pytest.raises(Corrupt, match="expected an order to forget a url or to expire"):
        read_order(body)


@given(body=st.dictionaries(st.sampled_from(["forget", "expire", "drop"]), anything))
def test_any_order_raises_only_corrupt(body: dict[str, Any]) -> None:
    try:
        got = read_order(body)
    except Corrupt:
        return
    assert isinstance(got.url, str) if isinstance(got, Forget) else isinstance(got.before, int)


@given(number=int64)
def test_a_number_is_not_a_url_to_forget(number: int) -> None:
    with pytest.raises(Corrupt):
        read_order({"forget": number})
