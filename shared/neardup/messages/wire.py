"""How messages between services look on the log.

    bytes 0-1   magic "nd"
    byte  2     FRAME, the version of this layout
    byte  3     zero
    bytes 4-7   CRC-32 of the rest, little-endian
    rest        msgpack: [kind, schema version, body]

The body is a map. A numpy array in it is a msgpack extension: eight bytes of header (dtype code, number
of dimensions, two zeros, columns as uint32), then the elements, little-endian. So an array is read without a copy
and starts aligned. One message carries a whole batch; `MAX_BYTES` keeps it well below a broker's limit.

Compatibility: a reader accepts exactly the FRAME and schema version that it knows. Change the meaning of
a body, and its schema version in `SCHEMAS` must go up by one.
"""

import struct
import zlib
from collections.abc import Collection
from typing import Any, Final

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
"""In all lists and maps together: each is an object of its own, of many times the bytes that it has on the wire.

More than twice what services write: a question with NEARDUP_CANDIDATES at its most is 100,000 items, and 512 KB of
other questions, evidence, documents or seeds before it are some ten thousands.
"""

SCHEMAS: Final[dict[str, int]] = {
    "registrations": 2,
    "skipped": 1,
    "probes": 2,
    "answers": 2,
    "questions": 1,
    "evidence": 2,
    "control": 1,
    "seed-keys": 1,
    "seed-entries": 1,
    "retired": 1,
    "documents": 2,
    "forgotten": 1,
    "dead-letter": 1,
}
"""Every kind of message and the schema version that this release writes and reads."""

_HEADER: Final = struct.Struct("<2sBBI")
_ARRAY: Final = struct.Struct("<BBxxI")
_EXT_ARRAY: Final = 1
_DTYPES: Final = tuple(
    np.dtype(code) for code in ("<u1", "<u2", "<u4", "<u8", "<i1", "<i2", "<i4", "<i8", "<f4", "<f8")
)
_CODES: Final = {dtype: code for code, dtype in enumerate(_DTYPES)}


def encode(kind: str, body: dict[str, Any]) -> bytes:
    """Pack a body. Raises KeyError for a kind not in `SCHEMAS`, TooLarge over the limits."""
    payload: bytes = msgpack.packb([kind, SCHEMAS[kind], body], default=_pack_array, use_bin_type=True)
    if len(payload) + _HEADER.size > MAX_BYTES:
        raise TooLarge(f"a {kind!r} message may have {MAX_BYTES} bytes, this one has {len(payload)}")
    return _HEADER.pack(MAGIC, FRAME, 0, zlib.crc32(payload)) + payload


def decode(data: bytes | None, kind: str) -> dict[str, Any]:
    """Unpack a body of the kind expected here. Raises nothing but a WireError, whatever the bytes are."""
    return decode_any(data, (kind,))[1]


def decode_any(data: bytes | None, kinds: Collection[str]) -> tuple[str, dict[str, Any]]:
    """The same for a topic that carries several kinds: (kind, body)."""
    if data is None or len(data) < _HEADER.size or data[:2] != MAGIC:
        raise NotOurs(f"expected a {_either(kinds)} message that starts with {MAGIC!r}, got {_preview(data)}")
    if len(data) > MAX_BYTES:
        raise TooLarge(f"a message may have {MAX_BYTES} bytes, this one has {len(data)}")
    _, frame, zero, expected = _HEADER.unpack_from(data)
    if frame != FRAME:
        raise WrongVersion(f"expected frame version {FRAME}, got {frame}; use the release that wrote it")
    if zero:
        raise Corrupt(f"expected a zero in byte 3, got {zero}")
    payload = memoryview(data)[_HEADER.size :]
    got = zlib.crc32(payload)
    if got != expected:
        raise Corrupt(f"expected checksum {expected:08x}, got {got:08x}: truncated or altered on the way")
    items = announced_items(np.frombuffer(payload, np.uint8))
    if items > MAX_ITEMS:
        raise TooLarge(f"a message may have {MAX_ITEMS} items in all its lists and maps, this one says {items}")
    try:
        envelope = msgpack.unpackb(payload, ext_hook=_unpack_array, strict_map_key=True)
    except WireError:
        raise
    except Exception as error:  # msgpack raises a dozen types for malformed input
        raise Corrupt(f"the payload is not msgpack: {error}") from error
    return _body(envelope, kinds)


def _body(envelope: Any, kinds: Collection[str]) -> tuple[str, dict[str, Any]]:
    match envelope:
        case [str(got), int(version), dict(body)]:
            pass
        case _:
            raise Corrupt(f"expected [kind, version, map], got a {type(envelope).__name__}")
    if got not in kinds:
        raise WrongKind(f"expected a {_either(kinds)} message, got {_preview(got.encode())}")
    if version != SCHEMAS[got]:
        raise WrongVersion(f"expected {got!r} schema {SCHEMAS[got]}, got {version}; upgrade the older side")
    if {*map(type, body)} - {str}:
        raise Corrupt("expected a map with names of text")
    return got, body


def _pack_array(value: Any) -> msgpack.ExtType:
    if not isinstance(value, np.ndarray):
        raise TypeError(f"cannot send a {type(value).__name__}")
    array: NDArray[Any] = value
    if array.dtype not in _CODES or not array.flags.c_contiguous:
        array = np.ascontiguousarray(value, dtype=value.dtype.newbyteorder("<"))
    if array.ndim not in (1, 2) or (array.ndim == 2 and array.shape[1] == 0):
        raise TypeError(f"arrays on the wire have 1 dimension, or 2 and some columns, not shape {array.shape}")
    if array.size > MAX_ELEMENTS:
        raise TooLarge(f"an array may have {MAX_ELEMENTS} elements, this one has {array.size}")
    columns = array.shape[1] if array.ndim == 2 else 0
    return msgpack.ExtType(_EXT_ARRAY, _ARRAY.pack(_CODES[array.dtype], array.ndim, columns) + array.tobytes())


def _unpack_array(code: int, data: bytes) -> NDArray[Any]:
    if code != _EXT_ARRAY or len(data) < _ARRAY.size:
        raise Corrupt(f"unknown msgpack extension {code} of {len(data)} bytes")
    dtype_code, ndim, columns = _ARRAY.unpack_from(data)
    if dtype_code >= len(_DTYPES) or ndim not in (1, 2) or (ndim == 1) != (columns == 0):
        raise Corrupt(f"no such array: dtype code {dtype_code}, {ndim} dimensions, {columns} columns")
    dtype = _DTYPES[dtype_code]
    row = dtype.itemsize * max(columns, 1)
    if (len(data) - _ARRAY.size) % row:
        raise Corrupt(f"{len(data) - _ARRAY.size} bytes are not whole rows of {row}")
    array = np.frombuffer(data, dtype, offset=_ARRAY.size)
    if array.size > MAX_ELEMENTS:
        raise TooLarge(f"an array may have {MAX_ELEMENTS} elements, this one has {array.size}")
    return array.reshape(-1, columns) if ndim == 2 else array


def _either(kinds: Collection[str]) -> str:
    return " or ".join(repr(kind) for kind in kinds)


def _preview(data: bytes | None) -> str:
    return "nothing" if data is None else f"{data[:24]!r} ({len(data)} bytes)"
