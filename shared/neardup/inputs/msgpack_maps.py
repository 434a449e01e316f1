"""A stream of msgpack maps, one per page, in the format of the pages topic. Items are numbered from 0."""

import io
from collections.abc import Iterator
from typing import Final

import msgpack

from neardup.errors import InvalidPage
from neardup.inputs.byte_stream import READ_ERRORS, describe_error
from neardup.inputs.source import MAX_ITEM_BYTES, Item, unreadable_rest
from neardup.messages.pages import page_from_fields

_CHUNK: Final = 2**18
_NEEDS_MORE: Final = object()


def read_msgpack_maps(source: str, stream: io.BufferedReader, after: int) -> Iterator[Item]:
    """Yield the pages in consecutive maps.

    Reading ends at a malformed map, because nothing marks the start of the next map.
    """
    unpacker = msgpack.Unpacker(
        raw=False, unicode_errors="surrogateescape", strict_map_key=False, max_buffer_size=MAX_ITEM_BYTES
    )
    number = fed = 0
    while True:
        try:
            chunk = stream.read1(_CHUNK)
        except READ_ERRORS as error:
            yield unreadable_rest(source, number, describe_error(error))
            return
        if not chunk:
            if unpacker.tell() < fed:
                yield unreadable_rest(source, number, "expected a whole msgpack map, got a part: the file is truncated")
            return
        fed += len(chunk)
        try:
            unpacker.feed(chunk)
        except msgpack.BufferFull:
            yield unreadable_rest(source, number, f"expected maps of at most {MAX_ITEM_BYTES} bytes, got a larger one")
            return
        while True:
            try:
                fields = _next(unpacker, skip=number <= after)
            except Exception as error:  # msgpack raises many types of errors for malformed input.
                yield unreadable_rest(source, number, f"expected a msgpack map: {error!r}")
                return
            if fields is _NEEDS_MORE:
                break
            if number > after:
                yield _item(source, number, fields)
            number += 1


def _next(unpacker: msgpack.Unpacker, *, skip: bool) -> object:
    try:
        return unpacker.skip() if skip else unpacker.unpack()
    except msgpack.OutOfData:
        return _NEEDS_MORE


def _item(source: str, number: int, fields: object) -> Item:
    try:
        return Item(source, number, page=page_from_fields(fields))
    except InvalidPage as error:
        return Item(source, number, rejected=str(error))
