"""Binary layout of the messages between services.

    bytes 0-1   magic "nd"
    byte  2     FRAME, the version of this layout
    byte  3     zero
    bytes 4-7   CRC-32 of the rest, little-endian
    rest        msgpack: [kind, schema version, body]

The body is a map. A numpy array in the body is a msgpack extension: eight bytes of header (dtype code, number
of dimensions, two zeros, columns as uint32), then the elements, little-endian. The elements are aligned, so a reader
uses the array without a copy. One message carries a whole batch; `MAX_BYTES` keeps it well below a broker's limit.

Compatibility: a reader accepts only its own FRAME, and only its own schema version of each kind. A change to the
meaning of a body must increase the version in the `Schema` of its kind.
"""

import struct
import zlib
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import msgpack
import numpy as np
from numpy.typing import NDArray

from neardup.errors import Corrupt, NotOurs, TooLarge, WireError, WrongKind, WrongVersion
from neardup.kernels.wire.msgpack_items import announced_items

MAGIC: Final = b"nd"
FRAME: Final = 1
MAX_BYTES: Final = 16 * 2**20
MAX_ELEMENTS: Final = 2**22
MAX_ITEMS: Final = 2**18
"""Maximum number of items in all lists and maps of a message. Each becomes a Python object many times larger.

The limit is twice what the largest message of a service needs: a question with the largest NEARDUP_CANDIDATES has
100,000 items, and 512 KB of other questions, evidence, documents or seeds before it have some ten thousand.
"""

Body = dict[str, Any]


class Schema(NamedTuple):
    """One kind of message and the version of its body."""

    kind: str
    version: int


_HEADER: Final = struct.Struct("<2sBBI")
_ARRAY: Final = struct.Struct("<BBxxI")
_EXT_ARRAY: Final = 1
_DTYPES: Final = tuple(
    np.dtype(code) for code in ("<u1", "<u2", "<u4", "<u8", "<i1", "<i2", "<i4", "<i8", "<f4", "<f8")
)
_CODES: Final = {dtype: code for code, dtype in enumerate(_DTYPES)}


def encode(schema: Schema, body: Body) -> bytes:
    """Pack a body. Raises TooLarge over the limits."""
    payload: bytes = msgpack.packb([*schema, body], default=_pack_array, use_bin_type=True)
    if len(payload) + _HEADER.size > MAX_BYTES:
        raise TooLarge(f"{schema.kind!r} message: expected at most {MAX_BYTES} bytes, got {len(payload)}")
    return _HEADER.pack(MAGIC, FRAME, 0, zlib.crc32(payload)) + payload


def decode(data: bytes | None, schema: Schema) -> Body:
    """Unpack a body of one kind. Raises only WireErrors, for any bytes."""
    return decode_any(data, {schema.kind: schema.version})[1]


def decode_any(data: bytes | None, versions: Mapping[str, int]) -> tuple[str, Body]:
    """Unpack a message of a kind in `versions` (kind → schema version) as (kind, body). Raises only WireErrors."""
    if data is None or len(data) < _HEADER.size or data[:2] != MAGIC:
        raise NotOurs(f"expected a {_either(versions)} message that starts with {MAGIC!r}, got {_preview(data)}")
    if len(data) > MAX_BYTES:
        raise TooLarge(f"expected at most {MAX_BYTES} bytes in a message, got {len(data)}")
    _, frame, zero, expected = _HEADER.unpack_from(data)
    if frame != FRAME:
        raise WrongVersion(f"expected frame version {FRAME}, got {frame}; use the release that wrote it")
    if zero:
        raise Corrupt(f"expected a zero in byte 3, got {zero}")
    payload = memoryview(data)[_HEADER.size :]
    got = zlib.crc32(payload)
    if got != expected:
        raise Corrupt(f"expected checksum {expected:08x}, got {got:08x}: truncated or altered in transit")
    items = announced_items(np.frombuffer(payload, np.uint8))
    if items > MAX_ITEMS:
        raise TooLarge(f"expected at most {MAX_ITEMS} items in all lists and maps of a message, got {items}")
    try:
        envelope = msgpack.unpackb(payload, ext_hook=_unpack_array, strict_map_key=True)
    except WireError:
        raise
    except Exception as error:  # msgpack raises a dozen types for malformed input
        raise Corrupt(f"expected a msgpack payload, got: {error}") from error
    return _body(envelope, versions)


def _body(envelope: Any, versions: Mapping[str, int]) -> tuple[str, Body]:
    match envelope:
        case [str(got), int(version), dict(body)]:
            pass
        case _:
            raise Corrupt(f"expected [kind, version, map], got a {type(envelope).__name__}")
    if got not in versions:
        raise WrongKind(f"expected a {_either(versions)} message, got {_preview(got.encode())}")
    if version != versions[got]:
        raise WrongVersion(f"expected {got!r} schema {versions[got]}, got {version}; upgrade the older side")
    if {*map(type, body)} - {str}:
        raise Corrupt("expected a map whose keys are text, got other keys")
    return got, body


def _pack_array(value: Any) -> msgpack.ExtType:
    if not isinstance(value, np.ndarray):
        raise TypeError(f"expected values of msgpack and numpy arrays, got a {type(value).__name__}")
    array: NDArray[Any] = value
    if array.dtype not in _CODES or not array.flags.c_contiguous:
        array = np.ascontiguousarray(value, dtype=value.dtype.newbyteorder("<"))
    if array.ndim not in (1, 2) or (array.ndim == 2 and array.shape[1] == 0):
        raise TypeError(f"expected an array with 1 dimension, or 2 and at least one column, got shape {array.shape}")
    if array.size > MAX_ELEMENTS:
        raise TooLarge(f"expected at most {MAX_ELEMENTS} elements in an array, got {array.size}")
    columns = array.shape[1] if array.ndim == 2 else 0
    return msgpack.ExtType(_EXT_ARRAY, _ARRAY.pack(_CODES[array.dtype], array.ndim, columns) + array.tobytes())


def _unpack_array(code: int, data: bytes) -> NDArray[Any]:
    if code != _EXT_ARRAY or len(data) < _ARRAY.size:
        raise Corrupt(f"expected an array as msgpack extension 1, got extension {code} of {len(data)} bytes")
    dtype_code, ndim, columns = _ARRAY.unpack_from(data)
    if dtype_code >= len(_DTYPES) or ndim not in (1, 2) or (ndim == 1) != (columns == 0):
        raise Corrupt(f"expected a known array type, got dtype code {dtype_code}, {ndim} dimensions, {columns} columns")
    dtype = _DTYPES[dtype_code]
    row = dtype.itemsize * max(columns, 1)
    if (len(data) - _ARRAY.size) % row:
        raise Corrupt(f"array of {len(data) - _ARRAY.size} bytes: expected whole rows of {row} bytes")
    array = np.frombuffer(data, dtype, offset=_ARRAY.size)
    if array.size > MAX_ELEMENTS:
        raise TooLarge(f"expected at most {MAX_ELEMENTS} elements in an array, got {array.size}")
    return array.reshape(-1, columns) if ndim == 2 else array


def _either(kinds: Iterable[str]) -> str:
    return " or ".join(repr(kind) for kind in kinds)


def _preview(data: bytes | None) -> str:
    return "nothing" if data is None else f"{data[:24]!r} ({len(data)} bytes)"
