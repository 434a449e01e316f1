"""A source that reads one stream of bytes, from a file or standard input."""

import io
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import BinaryIO

from neardup.inputs.byte_stream import READ_ERRORS, CountingReader, decompressed, describe_error
from neardup.inputs.source import Item, Source, unreadable_rest

Reader = Callable[[str, io.BufferedReader, int], Iterator[Item]]
"""(name of the source, bytes, `after`) -> items, as `Source.items` specifies."""


class StreamSource(Source):
    """A stream that is opened on first use, decompressed and counted."""

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
        """Number of bytes read, before decompression."""
        return 0 if self._counted is None else self._counted.count

    def items(self, after: int = -1) -> Iterator[Item]:
        try:
            with self._open() as raw:
                self._counted = CountingReader(raw)
                stream = decompressed(self._counted)
                for item in self._read(self.name, stream, after):
                    if item.number > after:  # A reader reports again why it ended, also in a resumed run.
                        yield item
        except READ_ERRORS as error:
            yield unreadable_rest(self.name, 0, describe_error(error))
