"""A source that reads one stream of bytes, from a file or standard input."""

import io
from collections.abc import Callable, Iterator
from typing import BinaryIO

from neardup.inputs.byte_stream import READ_ERRORS, Counted, decompressed, why
from neardup.inputs.source import Item, Source, ended

Reader = Callable[[str, io.BufferedReader, int], Iterator[Item]]
"""What the bytes mean: name of the source, the bytes, `after` → items, as `Source.items` gives them."""


class StreamSource(Source):
    """Decompresses and counts, and closes what it was given."""

    def __init__(self, name: str, raw: BinaryIO, bytes_total: int | None, read: Reader) -> None:
        self.name = name
        self.bytes_total = bytes_total
        self._counted = Counted(raw)
        self._read = read

    @property
    def bytes_read(self) -> int:  # type: ignore[override]
        """Of the file, as it is on disk."""
        return self._counted.count

    def items(self, after: int = -1) -> Iterator[Item]:
        with self._counted:
            try:
                stream = decompressed(self._counted)
            except READ_ERRORS as error:
                yield ended(self.name, 0, why(error))
                return
            for item in self._read(self.name, stream, after):
                if item.number > after:  # a reader may repeat why it ended
                    yield item
