"""A source that reads one stream of bytes, from a file or standard input."""

import io
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import BinaryIO

from neardup.inputs.byte_stream import READ_ERRORS, CountingReader, decompressed, describe_error
from neardup.inputs.source import Item, Source, unreadable_rest

Reader = Callable[[str, io.BufferedReader, int], Iterator[Item]]
"""What the bytes mean: name of the source, the bytes, `after` → items, as `Source.items` gives them."""


class StreamSource(Source):
    """Opens when items are asked for, decompresses, and counts."""

    def __init__(
        self,
        name: str,
        bytes_total: int | None,
        opened: Callable[[], AbstractContextManager[BinaryIO]],
        read: Reader,
    ) -> None:
        self.name = name
        self.bytes_total = bytes_total
        self._open = opened
        self._read = read
        self._counted: CountingReader | None = None

    @property
    def bytes_read(self) -> int:  # type: ignore[override]
        """Of the file, as it is on disk."""
        return 0 if self._counted is None else self._counted.count

    def items(self, after: int = -1) -> Iterator[Item]:
        try:
            with self._open() as raw:
                self._counted = CountingReader(raw)
                stream = decompressed(self._counted)
                for item in self._read(self.name, stream, after):
                    if item.number > after:  # a reader may repeat why it ended
                        yield item
        except READ_ERRORS as error:
            yield unreadable_rest(self.name, 0, describe_error(error))
