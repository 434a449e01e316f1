from typing import Any

import msgpack
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from neardup.kernels.wire.msgpack_items import announced_items
from tests.support import naive

leaves = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text(max_size=40) | st.binary()
    | st.builds(msgpack.ExtType, st.integers(0, 127), st.binary(max_size=20))
)  # fmt: skip
values = st.recursive(leaves, lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=3), inner))


def counted(data: bytes) -> int:
    return announced_items(np.frombuffer(data, np.uint8))


def items_of(value: Any) -> int:
    if isinstance(value, dict):
        return 2 * len(value) + sum(map(items_of, value.values()))
    return len(value) + sum(map(items_of, value)) if isinstance(value, list) else 0


@given(values)
def test_it_is_the_number_of_items_that_a_decoder_creates(value: Any) -> None:
    assert counted(msgpack.packb(value)) == items_of(value)


@pytest.mark.parametrize("size", [0, 15, 16, 255, 256, 65_535, 65_536])
@pytest.mark.parametrize("single", [True, False], ids=["single floats", "double floats"])
def test_every_width_of_a_length(size: int, single: bool) -> None:
    inner = ["x" * size, b"x" * size, msgpack.ExtType(1, b"x" * size), 1.5, [0] * size, dict.fromkeys(range(size))]
    assert counted(msgpack.packb(inner, use_single_float=single)) == len(inner) + size + 2 * size


@pytest.mark.parametrize("size", [1, 2, 4, 8, 16])
def test_a_short_extension_is_skipped(size: int) -> None:
    assert counted(msgpack.packb([msgpack.ExtType(1, b"\x9f" * size), [0]])) == 2 + 1


@given(st.binary(max_size=60) | st.lists(st.integers(0x80, 0xDF), max_size=30).map(bytes))
@example(b"\xdd\xff\xff\xff\xff")
@example(b"\xdd\xff\xff\xff")
@example(b"\xdf\xff\xff\xff\xff" * 9)
@example(b"\xc6\xff\xff\xff\xff\x91")
@example(b"\xc7\x01")
@example(b"\xc1\x91")
def test_any_bytes(data: bytes) -> None:
    assert counted(data) == naive.announced_items(data)


@given(values, st.data())
def test_truncated_msgpack(value: Any, data: st.DataObject) -> None:
    packed = msgpack.packb(value)
    cut = packed[: data.draw(st.integers(0, len(packed)))]
    assert counted(cut) == naive.announced_items(cut)
