"""Standard input: JSON lines or msgpack maps, distinguished by the first byte."""

import io
from collections.abc import Iterator

from neardup.inputs.byte_stream import READ_ERRORS, describe_error
from neardup.inputs.json_lines import read_json_lines
from neardup.inputs.msgpack_maps import read_msgpack_maps
from neardup.inputs.source import Item, unreadable_rest
from neardup.messages.pages import starts_a_map


def read_by_first_byte(source: str, stream: io.BufferedReader, after: int) -> Iterator[Item]:
    """Yield the pages in either format. Other input is read as JSON lines, which are then rejected."""
    try:
        head = stream.peek(2)
    except READ_ERRORS as error:
        yield unreadable_rest(source, 0, describe_error(error))
        return
    read = read_msgpack_maps if head and starts_a_map(head) else read_json_lines
    yield from read(source, stream, after)
