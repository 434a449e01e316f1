"""The body of an HTTP response without transfer and content encodings.

Many crawlers store decoded bodies with the original headers. A body that does not start like the encoding in its header
is therefore returned unchanged. A body that starts like the encoding but turns out to be invalid is an error.
"""

import zlib
from collections.abc import Callable
from typing import Final

import brotli

from neardup.errors import InvalidPage

_GZIP: Final = b"\x1f\x8b"


def decoded_body(body: bytes, transfer_encoding: str, content_encoding: str, limit: int) -> bytes:
    """Remove both encodings. Raises InvalidPage if decoding fails or yields more than `limit` bytes."""
    if "chunked" in transfer_encoding.lower():
        body = _unchunked(body)
    # The header lists encodings in the order in which they were applied (RFC 9110 §8.4).
    for coding in reversed([each.strip().lower() for each in content_encoding.split(",")]):
        if coding in ("", "identity"):
            continue
        if coding not in _DECODERS:
            raise InvalidPage(f"content-encoding: expected gzip, deflate or br, got {coding[:40]}")
        body = _DECODERS[coding](body, limit)
    return body


def _unchunked(body: bytes) -> bytes:
    parts: list[bytes] = []
    place = 0
    while place < len(body):
        end = body.find(b"\r\n", place)
        size = _chunk_size(body[place : max(end, place)])
        if size is None:
            if not parts:
                return body
            raise InvalidPage(f"expected the size of a chunk at byte {place} of the body, got other bytes")
        if size == 0:
            break
        start = end + 2
        if start + size > len(body):
            raise InvalidPage(f"expected a chunk of {size} bytes, got {len(body) - start}: the body is truncated")
        parts.append(body[start : start + size])
        place = start + size + 2
    return b"".join(parts)


def _chunk_size(line: bytes) -> int | None:
    digits = line.partition(b";")[0].strip()
    # int() would also accept signs and underscores.
    if not 0 < len(digits) <= 8 or digits.strip(b"0123456789abcdefABCDEF"):
        return None
    return int(digits, 16)


def _gunzipped(body: bytes, limit: int) -> bytes:
    return _inflated(body, limit, 16 + zlib.MAX_WBITS, "gzip") if body.startswith(_GZIP) else body


def _undeflated(body: bytes, limit: int) -> bytes:
    # "deflate" should be a zlib stream (RFC 9110 §8.4.1.2) but is often raw. A zlib header is a multiple of 31.
    zlib_header = len(body) >= 2 and body[0] & 0x0F == 8 and int.from_bytes(body[:2]) % 31 == 0
    return _inflated(body, limit, zlib.MAX_WBITS if zlib_header else -zlib.MAX_WBITS, "deflate") if body else body


def _inflated(body: bytes, limit: int, window: int, coding: str) -> bytes:
    inflater = zlib.decompressobj(window)
    try:
        data = inflater.decompress(body, limit + 1)
    except zlib.error as error:
        raise InvalidPage(f"content-encoding {coding}: {error}") from error
    return _checked(data, limit, inflater.eof, coding)


def _unbrotlied(body: bytes, limit: int) -> bytes:
    if not body:
        return body
    inflater = brotli.Decompressor()
    try:
        data: bytes = inflater.process(body, output_buffer_limit=limit + 1)
    except brotli.error as error:
        raise InvalidPage(f"content-encoding br: {error}") from error
    return _checked(data, limit, inflater.is_finished(), "br")


def _checked(data: bytes, limit: int, finished: bool, coding: str) -> bytes:
    if len(data) > limit:
        raise InvalidPage(f"content-encoding {coding}: expected at most {limit} bytes, got more")
    if not finished:
        raise InvalidPage(f"content-encoding {coding}: expected a complete body, got a truncated one")
    return data


_DECODERS: Final[dict[str, Callable[[bytes, int], bytes]]] = {
    "gzip": _gunzipped,
    "x-gzip": _gunzipped,
    "deflate": _undeflated,
    "br": _unbrotlied,
}
