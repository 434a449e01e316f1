import contextlib
import tracemalloc
import zlib
from typing import Any

import msgpack
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from neardup.errors import Corrupt, NotOurs, TooLarge, WireError, WrongKind, WrongVersion
from neardup.messages import wire
from tests.support.messages import SCHEMAS, VERSIONS, decode, encode

KIND = "registrations"
TWO_KINDS = {kind: VERSIONS[kind] for kind in ("answers", "evidence")}
DTYPES = ("u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f4", "f8")
HEADER_BYTES = 8

dtypes = st.sampled_from([np.dtype(code).newbyteorder("<") for code in DTYPES])
vectors = dtypes.flatmap(lambda dtype: hnp.arrays(dtype, st.integers(0, 40)))
tables = dtypes.flatmap(lambda dtype: hnp.arrays(dtype, st.tuples(st.integers(0, 12), st.integers(1, 9))))


def framed(payload: bytes, *, frame: int = wire.FRAME) -> bytes:
    """Return a payload with a valid header, so that only the payload can cause an error."""
    return wire.MAGIC + bytes([frame, 0]) + zlib.crc32(payload).to_bytes(4, "little") + payload


def packed(envelope: Any) -> bytes:
    return framed(msgpack.packb(envelope))


def array_extension(dtype: int, ndim: int, columns: int, elements: bytes, *, code: int = 1) -> bytes:
    head = bytes([dtype, ndim, 0, 0]) + columns.to_bytes(4, "little")
    return packed([KIND, VERSIONS[KIND], {"column": msgpack.ExtType(code, head + elements)}])


def sample() -> bytes:
    body = {"numbers": np.arange(20, dtype=np.uint64).reshape(5, 4), "text": ["a", "é", None], "size": np.arange(3)}
    return encode(KIND, body)


def only_wire_errors(data: bytes | None, kind: str = KIND) -> None:
    with contextlib.suppress(WireError):
        decode(data, kind)


# Round trips


@given(array=vectors | tables)
def test_an_array_is_read_back_with_its_dtype_shape_and_bits(array: NDArray[Any]) -> None:
    got = decode(encode(KIND, {"column": array}), KIND)["column"]
    assert got.dtype == array.dtype
    assert got.shape == array.shape
    assert got.tobytes() == array.tobytes()


@pytest.mark.parametrize("code", DTYPES)
@pytest.mark.parametrize("shape", [(6,), (2, 3), (0,), (0, 3)])
def test_every_dtype_can_be_sent_in_one_and_two_dimensions(code: str, shape: tuple[int, ...]) -> None:
    array = np.arange(np.prod(shape), dtype=code).reshape(shape)
    got = decode(encode(KIND, {"column": array}), KIND)["column"]
    np.testing.assert_array_equal(got, array)
    assert got.dtype == array.dtype
    assert got.shape == shape


@given(
    body=st.dictionaries(
        st.text(max_size=8),
        st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text() | st.binary() | st.lists(st.text()),
        max_size=6,
    )
)
def test_plain_values_are_read_back_unchanged(body: dict[str, Any]) -> None:
    assert decode(encode(KIND, body), KIND) == body


@pytest.mark.parametrize("kind", ["answers", "evidence"])
def test_a_reader_of_several_kinds_returns_the_kind(kind: str) -> None:
    assert wire.decode_any(encode(kind, {"a": 1}), TWO_KINDS) == (kind, {"a": 1})


def test_an_unexpected_kind_is_refused_and_the_expected_ones_are_named() -> None:
    with pytest.raises(WrongKind, match="expected a 'answers' or 'evidence' message, got b'probes'"):
        wire.decode_any(encode("probes", {}), TWO_KINDS)


@pytest.mark.parametrize("kind", sorted(SCHEMAS))
def test_every_kind_can_be_sent(kind: str) -> None:
    assert decode(encode(kind, {"a": 1}), kind) == {"a": 1}


def test_the_layout_of_a_message_does_not_change_within_a_frame_version() -> None:
    data = encode(KIND, {"a": np.array([1, 258], np.uint16)})
    payload = (
        b"\x93\xadregistrations\x02\x81\xa1a"  # [kind, version, {"a":
        b"\xc7\x0c\x01"  # extension 1 of 12 bytes
        b"\x01\x01\x00\x00\x00\x00\x00\x00"  # dtype code 1, one dimension, no columns
        b"\x01\x00\x02\x01"  # 1 and 258, little-endian
    )
    assert data == b"nd\x01\x00" + zlib.crc32(payload).to_bytes(4, "little") + payload


@given(array=vectors | tables, key=st.text(min_size=1, max_size=9))
def test_decoded_arrays_are_views_and_start_aligned(array: NDArray[Any], key: str) -> None:
    got = decode(encode(KIND, {key: array}), KIND)[key]
    assert not got.flags.owndata
    assert not got.flags.writeable
    assert got.flags.aligned
    assert got.ctypes.data % 8 == 0 or got.size == 0


@given(array=tables, step=st.integers(1, 3))
def test_views_that_are_not_contiguous_are_copied(array: NDArray[Any], step: int) -> None:
    for view in (array.T if array.shape[0] else array, array[::-1], array[::step], array[:, 0]):
        got = decode(encode(KIND, {"column": view}), KIND)["column"]
        assert got.shape == view.shape
        assert got.tobytes() == view.tobytes()


@pytest.mark.parametrize("code", [code for code in DTYPES if code[1] != "1"])
def test_a_big_endian_array_is_read_back_as_little_endian_with_equal_values(code: str) -> None:
    array = np.array([1, 2, 100], np.dtype(code).newbyteorder(">"))
    got = decode(encode(KIND, {"column": array}), KIND)["column"]
    assert got.dtype == np.dtype(code).newbyteorder("<")
    np.testing.assert_array_equal(got, array)


# Bodies that cannot be sent


@pytest.mark.parametrize("shape", [(2, 3, 4), (3, 0)])
def test_an_array_of_another_shape_cannot_be_sent(shape: tuple[int, ...]) -> None:
    with pytest.raises(TypeError, match="shape"):
        encode(KIND, {"column": np.zeros(shape)})


def test_an_object_cannot_be_sent() -> None:
    with pytest.raises(TypeError, match="got a object"):
        encode(KIND, {"column": object()})


def test_an_oversized_message_cannot_be_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "MAX_BYTES", 100)
    assert len(encode(KIND, {"text": "x" * 60})) <= 100
    with pytest.raises(TooLarge, match=r"'registrations' message: expected at most 100 bytes, got \d+"):
        encode(KIND, {"text": "x" * 100})


def test_the_byte_limit_is_the_same_on_both_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    data = encode(KIND, {"text": "x" * 60})
    monkeypatch.setattr(wire, "MAX_BYTES", len(data))
    assert decode(encode(KIND, {"text": "x" * 60}), KIND) == {"text": "x" * 60}
    monkeypatch.setattr(wire, "MAX_BYTES", len(data) - 1)
    with pytest.raises(TooLarge):
        encode(KIND, {"text": "x" * 60})
    with pytest.raises(TooLarge):
        decode(data, KIND)


def test_an_oversized_array_cannot_be_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "MAX_ELEMENTS", 8)
    encode(KIND, {"column": np.zeros((2, 4))})
    with pytest.raises(TooLarge, match="expected at most 8 elements in an array, got 9"):
        encode(KIND, {"column": np.zeros(9)})


# Messages that cannot be read


@pytest.mark.parametrize("data", [None, b"", b"nd", b"nd\x01\x00\x00\x00\x00", b"<html></html>", b"{}" * 10])
def test_a_buffer_without_our_magic_is_not_ours(data: bytes | None) -> None:
    with pytest.raises(NotOurs) as raised:
        decode(data, KIND)
    assert "expected a 'registrations' message that starts with b'nd'" in str(raised.value)
    assert ("nothing" if data is None else f"({len(data)} bytes)") in str(raised.value)


def test_a_truncated_message_is_corrupt() -> None:
    data = sample()
    for length in range(HEADER_BYTES, len(data)):
        with pytest.raises(Corrupt, match=r"expected checksum [0-9a-f]{8}, got [0-9a-f]{8}: truncated or altered"):
            decode(data[:length], KIND)


def test_an_altered_byte_is_corrupt() -> None:
    data = sample()
    for place in range(4, len(data)):
        altered = bytearray(data)
        altered[place] ^= 0x40
        with pytest.raises(Corrupt, match="expected checksum"):
            decode(bytes(altered), KIND)


def test_the_fourth_byte_must_be_zero() -> None:
    altered = bytearray(sample())
    altered[3] = 1
    with pytest.raises(WireError):
        decode(bytes(altered), KIND)


@pytest.mark.parametrize("frame", [0, 2, 255])
def test_another_frame_version_is_a_wrong_version(frame: int) -> None:
    with pytest.raises(WrongVersion, match=f"expected frame version 1, got {frame};"):
        decode(framed(sample()[HEADER_BYTES:], frame=frame), KIND)


def test_another_schema_version_is_a_wrong_version() -> None:
    later = VERSIONS[KIND] + 1
    with pytest.raises(WrongVersion, match=rf"expected 'registrations' schema {later - 1}, got {later}; upgrade"):
        decode(packed([KIND, later, {}]), KIND)


def test_a_message_for_another_topic_is_a_wrong_kind() -> None:
    with pytest.raises(WrongKind, match="expected a 'registrations' message, got b'dead-letter'"):
        decode(encode("dead-letter", {}), KIND)


def test_an_oversized_message_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    data = sample()
    monkeypatch.setattr(wire, "MAX_BYTES", 50)
    with pytest.raises(TooLarge, match=f"expected at most 50 bytes in a message, got {len(data)}"):
        decode(data, KIND)


def test_an_oversized_array_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    data = encode(KIND, {"column": np.zeros(9, np.uint8)})
    monkeypatch.setattr(wire, "MAX_ELEMENTS", 8)
    with pytest.raises(TooLarge, match="expected at most 8 elements in an array, got 9"):
        decode(data, KIND)


def test_the_items_of_all_lists_and_maps_are_counted_together() -> None:
    envelope_items = 3 + 2
    most: list[Any] = [[]] * (wire.MAX_ITEMS - envelope_items)
    assert decode(encode(KIND, {"column": most}), KIND)
    with pytest.raises(TooLarge, match=f"expected at most {wire.MAX_ITEMS} items in all .* got {wire.MAX_ITEMS + 1}"):
        decode(encode(KIND, {"column": [*most, []]}), KIND)


@pytest.mark.parametrize(
    "swollen",
    [
        [[]] * 2_000_000,
        [[[]] * 1000] * 2000,
        [[{}] * 7] * 250_000,
        [{"a": index} for index in range(200_000)],
    ],
    ids=["one list", "lists of lists", "lists of maps", "maps"],
)
def test_a_message_that_would_expand_is_refused_before_it_is_decoded(swollen: list[Any]) -> None:
    data = encode(KIND, {"column": swollen})
    assert_refused_immediately(data)


def test_lists_that_announce_too_many_items_are_refused_before_allocation() -> None:
    assert_refused_immediately(framed(b"\xdd\x00\x01\xff\xff" * 900))


def assert_refused_immediately(data: bytes) -> None:
    decode(encode(KIND, {}), KIND)  # loads the kernel
    tracemalloc.start()
    try:
        with pytest.raises(TooLarge, match=f"expected at most {wire.MAX_ITEMS} items"):
            decode(data, KIND)
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(("dtype", "ndim", "columns", "size"), [(3, 1, 0, 12), (3, 2, 2, 24), (0, 2, 3, 4)])
def test_an_array_that_is_not_whole_rows_is_corrupt(dtype: int, ndim: int, columns: int, size: int) -> None:
    row = np.dtype(DTYPES[dtype]).itemsize * max(columns, 1)
    with pytest.raises(Corrupt, match=f"array of {size} bytes: expected whole rows of {row} bytes"):
        decode(array_extension(dtype, ndim, columns, bytes(size)), KIND)


@pytest.mark.parametrize(("dtype", "ndim", "columns"), [(10, 1, 0), (255, 1, 0), (0, 0, 0), (0, 3, 2), (0, 1, 2)])
def test_an_array_that_cannot_exist_is_corrupt(dtype: int, ndim: int, columns: int) -> None:
    expected = f"got dtype code {dtype}, {ndim} dimensions, {columns} columns"
    with pytest.raises(Corrupt, match=expected):
        decode(array_extension(dtype, ndim, columns, b""), KIND)


def test_a_table_without_columns_is_corrupt() -> None:
    with pytest.raises(Corrupt, match="2 dimensions, 0 columns"):
        decode(array_extension(0, 2, 0, b"ab"), KIND)


def test_an_unknown_extension_is_corrupt() -> None:
    with pytest.raises(Corrupt, match="got extension 7 of 10 bytes"):
        decode(array_extension(0, 1, 0, b"ab", code=7), KIND)


def test_an_extension_shorter_than_its_header_is_corrupt() -> None:
    with pytest.raises(Corrupt, match="extension 1 of 7 bytes"):
        decode(packed([KIND, 1, {"column": msgpack.ExtType(1, bytes(7))}]), KIND)


@pytest.mark.parametrize(
    "envelope", [None, 1, "text", [], {}, [KIND, 1], [KIND, 1, {}, 0], [KIND, "1", {}], [1, KIND, {}], [KIND, 1, []]]
)
def test_another_envelope_is_corrupt(envelope: Any) -> None:
    with pytest.raises(Corrupt, match=r"expected \[kind, version, map\], got"):
        decode(packed(envelope), KIND)


@pytest.mark.parametrize("payload", [b"", b"\xc1", b"\x93\xa1", b"\x90\x90", b"\xa1\xff"])
def test_a_payload_that_is_not_msgpack_is_corrupt(payload: bytes) -> None:
    with pytest.raises(Corrupt, match="expected a msgpack payload, got"):
        decode(framed(payload), KIND)


@pytest.mark.parametrize("opening", [b"\x91", b"\x81\xa1a", b"\x81\xa1a\x91"])
@pytest.mark.parametrize("depth", [100, 480, 960, 1000, 1020, 5000])
def test_a_deeply_nested_payload_is_corrupt(opening: bytes, depth: int) -> None:
    with pytest.raises(Corrupt):
        decode(framed(opening * depth + b"\xc0"), KIND)


# Arbitrary bytes raise only WireError

plain = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text() | st.binary()
extensions = st.builds(msgpack.ExtType, st.integers(0, 127), st.binary(max_size=40))
keys = st.text(max_size=5) | st.binary(max_size=5) | st.integers(-5, 5)
anything = st.recursive(
    plain | extensions, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4)
)


@st.composite
def mutated(draw: st.DrawFn, original: bytes) -> bytes:
    """Generate the bytes with some of them changed, removed, truncated or inserted."""
    data = bytearray(original)
    for _ in range(draw(st.integers(1, 6))):
        place = draw(st.integers(0, max(len(data) - 1, 0)))
        match draw(st.sampled_from(["set", "insert", "remove", "truncate"])):
            case "set":
                data[place : place + 1] = bytes([draw(st.integers(0, 255))])
            case "insert":
                data[place:place] = draw(st.binary(min_size=1, max_size=9))
            case "remove":
                del data[place : place + draw(st.integers(1, 9))]
            case "truncate":
                del data[place:]
    return bytes(data)


@given(data=st.none() | st.binary(max_size=200))
def test_random_bytes_raise_only_wire_errors(data: bytes | None) -> None:
    with pytest.raises(WireError):
        decode(data, KIND)


@given(payload=st.binary(max_size=200))
@example(payload=b"\xd6\xff\x00\x00\x00\x00")
@example(payload=b"\xc7\x03\xff\x00\x00\x00")
@example(payload=b"\xdd\xff\xff\xff\xff")
@example(payload=b"\xc9\xff\xff\xff\xff\x01")
def test_random_payloads_raise_only_wire_errors(payload: bytes) -> None:
    only_wire_errors(framed(payload))


@given(data=mutated(sample()))
def test_mutated_messages_raise_only_wire_errors(data: bytes) -> None:
    only_wire_errors(data)


@given(payload=mutated(sample()[HEADER_BYTES:]))
def test_mutated_payloads_with_a_valid_checksum_raise_only_wire_errors(payload: bytes) -> None:
    only_wire_errors(framed(payload))


@given(envelope=anything)
def test_any_msgpack_with_a_valid_checksum_raises_only_wire_errors(envelope: Any) -> None:
    only_wire_errors(packed(envelope))


@given(body=st.dictionaries(keys, anything, max_size=4))
def test_any_body_with_a_valid_checksum_raises_only_wire_errors(body: Any) -> None:
    only_wire_errors(packed([KIND, VERSIONS[KIND], body]))


@given(
    dtype=st.integers(0, 255),
    ndim=st.integers(0, 255) | st.integers(1, 2),
    columns=st.integers(0, 2**32 - 1) | st.integers(0, 4),
    elements=st.binary(max_size=64),
)
def test_any_array_header_raises_only_wire_errors(dtype: int, ndim: int, columns: int, elements: bytes) -> None:
    only_wire_errors(array_extension(dtype, ndim, columns, elements))
