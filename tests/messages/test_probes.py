"""Tests of probes: round trips, and rejection of invalid ones."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from neardup.errors import Corrupt, WireError, WrongKind, WrongPlan
from neardup.messages.formats import MessageContext
from neardup.messages.probes import Probes, read_probes, write_probes
from neardup.messages.registry import PROBES_TOPIC
from neardup.types import BatchId
from tests.support.documents import (
    M,
    anything,
    batches,
    body_of,
    utf8,
)
from tests.support.messages import decode, encode

BATCH = BatchId(0, 5, 9)
CONTEXT = MessageContext(plan="another plan", generation=0, partitions=1, owners=1, mips=M)


@given(data=st.data(), size=st.integers(0, 9), batch=batches)
def test_probes_are_read_back(data: st.DataObject, size: int, batch: BatchId) -> None:
    columns = hnp.arrays(np.uint64, size)
    keys = data.draw(st.none() | columns)
    levels = data.draw(st.none() | hnp.arrays(np.uint8, (size, 64)))
    query_only = data.draw(st.none() | hnp.arrays(np.bool_, size))
    message = write_probes(Probes(batch, data.draw(columns), keys, levels, query_only), "plan")
    got = read_probes(decode(message, "probes"))
    assert got.batch == batch
    assert (got.query_only is not None) == (query_only is not None and bool(query_only.any()))
    assert got.query_only is None or (got.query_only == query_only).all()
    assert got.fingerprints.size == size
    for sent, came in ((keys, got.keys), (levels, got.levels)):
        assert (came is None) == (sent is None)
        if sent is not None and came is not None:
            np.testing.assert_array_equal(came, sent)


def test_probes_of_another_plan_are_refused_and_both_digests_are_named() -> None:
    message = write_probes(Probes(BATCH, np.zeros(1, np.uint64)), "one plan")
    with pytest.raises(WrongPlan, match="expected a message made with plan another plan, got 'one plan'"):
        PROBES_TOPIC.read(message, CONTEXT)


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
def test_invalid_columns_of_probes_are_corrupt(changes: dict[str, Any]) -> None:
    with pytest.raises(Corrupt, match="expected"):
        read_probes(decode(encode("probes", probes_body(**changes)), "probes"))


@given(
    changes=st.dictionaries(st.sampled_from(["batch", "fingerprint", "key", "levels", "asks"]), anything, min_size=1)
)
def test_any_probes_raise_only_corrupt(changes: dict[str, Any]) -> None:
    message = encode("probes", probes_body(**changes))
    try:
        got = read_probes(decode(message, "probes"))
    except Corrupt:
        return
    for column in (got.keys, got.levels):
        assert column is None or len(column) == got.fingerprints.size


def test_another_kind_of_message_is_not_a_probe() -> None:
    with pytest.raises(WrongKind):
        read_probes(decode(encode("answers", probes_body()), "probes"))


@given(value=st.none() | st.binary() | utf8.map(str.encode))
def test_a_foreign_value_is_a_wire_error(value: bytes | None) -> None:
    with pytest.raises(WireError):
        read_probes(decode(value, "probes"))
