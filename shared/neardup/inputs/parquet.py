"""Parquet files with a column `url` and one of `html`, `text`, `content`. Items have their row numbers, from 0."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Final

import pyarrow
import pyarrow.parquet

from neardup.errors import InputError, InvalidPage
from neardup.inputs.source import MAX_ITEM_BYTES, Item, Source
from neardup.messages.pages import page_from_fields

_CONTENT: Final = ("html", "text", "content")
_OPTIONAL: Final = ("fetched_at", "content_type", "charset", "crawl")
_ROWS: Final = 64
_ERRORS: Final = (pyarrow.ArrowException, OSError, ValueError)


class ParquetSource(Source):
    """The rows of one file, read by row groups. A column `content` is read as html.

    The constructor raises InputError if the file is not Parquet or lacks the columns.
    """

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        self._size = path.stat().st_size
        self.bytes_total = self._size
        self.bytes_read = 0
        try:
            self._file = pyarrow.parquet.ParquetFile(path)
        except _ERRORS as error:
            raise InputError(f"{name}: expected a Parquet file: {error}") from error
        columns = self._file.schema_arrow.names
        content = next((column for column in _CONTENT if column in columns), None)
        if "url" not in columns or content is None:
            self._file.close()
            raise InputError(f"{name}: expected columns url and one of {', '.join(_CONTENT)}, got {', '.join(columns)}")
        self._content = content
        self._columns = ["url", content, *(column for column in _OPTIONAL if column in columns)]

    def items(self, after: int = -1) -> Iterator[Item]:
        metadata = self._file.metadata
        number = 0
        with self._file:
            for group in range(metadata.num_row_groups):
                rows = metadata.row_group(group).num_rows
                if number + rows > after + 1:
                    yield from self._rows(group, number, after)
                number += rows
                self._reached(number)

    def _rows(self, group: int, number: int, after: int) -> Iterator[Item]:
        batches = self._file.iter_batches(_ROWS, row_groups=[group], columns=self._columns)
        while True:
            try:
                batch = next(batches, None)
            except _ERRORS as error:
                # The footer locates row groups, so the next one can still be read.
                reason = f"expected a readable row group {group}, got: {error}; the rest of the row group is not read"
                yield Item(self.name, max(number, after + 1), rejected=reason)
                return
            if batch is None:
                return
            for row in range(batch.num_rows):
                if number > after:
                    yield self._item(number, {column: batch.column(column)[row].as_py() for column in self._columns})
                number += 1
            self._reached(number)

    def _item(self, number: int, fields: dict[str, object]) -> Item:
        content = fields.pop(self._content)
        if isinstance(content, bytes | str) and len(content) > MAX_ITEM_BYTES:
            return Item(self.name, number, rejected=f"expected at most {MAX_ITEM_BYTES} bytes, got {len(content)}")
        if self._content == "text" and isinstance(content, bytes):
            content = content.decode("utf-8", "replace")
        fields["text" if self._content == "text" else "html"] = content
        fetched_at = fields.get("fetched_at")
        if isinstance(fetched_at, datetime):
            fields["fetched_at"] = fetched_at.isoformat()
        try:
            return Item(self.name, number, page=page_from_fields(fields))
        except InvalidPage as error:
            return Item(self.name, number, rejected=str(error))

    def _reached(self, rows: int) -> None:
        self.bytes_read = self._size * rows // max(self._file.metadata.num_rows, 1)
