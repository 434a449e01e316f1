"""Folders of pages as files, and single files. Numbers count the files in the order of their paths, from 0."""

import os
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Final
from urllib.parse import quote

from neardup.errors import InvalidPage
from neardup.inputs.source import MAX_ITEM_BYTES, Item, Source
from neardup.messages.pages import page_from_fields

TYPES: Final = {
    ".html": "text/html",
    ".htm": "text/html",
    ".xhtml": "application/xhtml+xml",
    ".txt": "text/plain",
}
DEFAULT_PREFIX: Final = "file:///"


class FolderSource(Source):
    """Every file below a folder with a suffix in TYPES. Its URL is the prefix and its path within the folder.

    Links to folders are not followed, because they may form cycles.
    """

    def __init__(self, name: str, root: Path, url_prefix: str = DEFAULT_PREFIX) -> None:
        self.name = name
        self.bytes_read = 0
        self._root = root
        self._url_prefix = url_prefix

    @cached_property
    def bytes_total(self) -> int:  # type: ignore[override]
        """Size of all files, determined by one walk through the folder."""
        return sum(_size(path) for path in self._paths())

    def items(self, after: int = -1) -> Iterator[Item]:
        for number, path in enumerate(self._paths()):
            size = _size(path)
            if number > after:
                yield self._item(number, path, size)
            self.bytes_read += size

    def _item(self, number: int, path: Path, size: int) -> Item:
        where = path.relative_to(self._root) if path != self._root else Path(path.name)
        if size > MAX_ITEM_BYTES:
            return Item(
                self.name, number, rejected=f"{where}: expected files of at most {MAX_ITEM_BYTES} bytes, got {size}"
            )
        try:
            fields = {
                # File names are bytes: bytes that are not UTF-8 become %XX in the URL.
                "url": self._url_prefix + quote(os.fsencode(where.as_posix())),
                "html": path.read_bytes(),
                "content_type": TYPES[path.suffix.lower()],
            }
            return Item(self.name, number, page=page_from_fields(fields))
        except (OSError, InvalidPage) as error:
            return Item(self.name, number, rejected=f"{where}: {error}")

    def _paths(self) -> Iterator[Path]:
        if self._root.is_file():
            yield self._root
            return
        for folder, folders, files in os.walk(self._root):
            folders.sort()
            for file in sorted(files):
                path = Path(folder, file)
                if path.suffix.lower() in TYPES:
                    yield path


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0  # Reading the file will report the error.
