"""JSON lines: one page per line in the format of the pages topic. Items have their line numbers, from 1."""

import io
from collections.abc import Iterator

from neardup.errors import InvalidPage
from neardup.inputs.byte_stream import READ_ERRORS, describe_error
from neardup.inputs.source import MAX_ITEM_BYTES, Item, unreadable_rest
from neardup.messages.pages import page_from_json


def read_json_lines(source: str, stream: io.BufferedReader, after: int) -> Iterator[Item]:
    """Yield the pages in lines of JSON objects. Blank lines are skipped but counted."""
    number = 0
    while True:
        number += 1
        try:
            line = stream.readline(MAX_ITEM_BYTES)
            whole = line.endswith(b"\n") or len(line) < MAX_ITEM_BYTES
            if not whole:
                _skip_line(stream)
        except READ_ERRORS as error:
            yield unreadable_rest(source, number, describe_error(error))
            return
        if not line:
            return
        if number <= after or not line.strip():
            continue
        if not whole:
            reason = f"expected lines of at most {MAX_ITEM_BYTES} bytes, got a longer one"
            yield Item(source, number, rejected=reason)
            continue
        try:
            yield Item(source, number, page=page_from_json(line))
        except InvalidPage as error:
            yield Item(source, number, rejected=str(error))


def _skip_line(stream: io.BufferedReader) -> None:
    while (rest := stream.readline(MAX_ITEM_BYTES)) and not rest.endswith(b"\n"):
        pass
