"""Folders of pages as files, and single files.

Numbers count the files in the order of their paths, from 0. A folder that is read again by later runs may have new
files anywhere in this order. `FolderSource.resume` therefore keeps a record of the processed files; numbers then count
them in the order of processing, through all runs.
"""

import os
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Final
from urllib.parse import quote

from neardup.errors import InputError, InvalidPage
from neardup.inputs.processed_files import ProcessedFiles, digest_of
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
    """Every file below a folder with a suffix in TYPES. The URL of a file is the prefix and the path in the folder.

    Links to folders are not followed, because they may form cycles.
    """

    def __init__(self, name: str, root: Path, url_prefix: str = DEFAULT_PREFIX) -> None:
        self.name = name
        self.bytes_read = 0
        self._root = root
        self._url_prefix = url_prefix
        self._processed: ProcessedFiles | None = None

    @property
    def is_folder(self) -> bool:
        """False for a single file."""
        return self._root.is_dir()

    def resume(self, record: Path, count: int, unfinished: int) -> None:
        """Let `items` yield the files that are not among the first `count` items of earlier runs.

        `record` is the path of the record of processed files, which is created if necessary. The next `unfinished`
        items are those of a save that was cut off. `items` yields them first, in the same order, and raises InputError
        if one of these pages is gone. Raises StateError if the record cannot be used.
        """
        names = (self._name(path) for path in self._paths())
        self._processed = ProcessedFiles.open(record, count, unfinished, names)

    def save(self, count: int) -> None:
        """Make the record of the first `count` items durable. To be called before `count` itself is stored."""
        assert self._processed is not None, "only after resume"
        self._processed.save(count)

    @cached_property
    def bytes_total(self) -> int:  # type: ignore[override]
        """Size of all files, determined by one walk through the folder."""
        return sum(_size(path) for path in self._paths())

    def items(self, after: int = -1) -> Iterator[Item]:
        if self._processed is not None:
            yield from self._unfinished_items(self._processed, after + 1)
            yield from self._new_items(self._processed)
            return
        for number, path in enumerate(self._paths()):
            size = _size(path)
            if number > after:
                yield self._item(number, path, size)
            self.bytes_read += size

    def _new_items(self, processed: ProcessedFiles) -> Iterator[Item]:
        for path in self._paths():
            size = _size(path)
            digest = digest_of(self._name(path))
            if digest not in processed:
                item = self._item(len(processed), path, size)
                processed.add(digest, is_page=item.page is not None)
                yield item
            self.bytes_read += size

    def _unfinished_items(self, processed: ProcessedFiles, first: int) -> Iterator[Item]:
        """Yield the items of a save that was cut off. The page of each number must be the same as before."""
        if not processed.unfinished:
            return
        wanted = {each.digest for each in processed.unfinished}
        paths = {digest: path for path in self._paths() if (digest := digest_of(self._name(path))) in wanted}
        for number, (digest, was_page) in enumerate(processed.unfinished, start=first):
            path = paths.get(digest)
            item = None if path is None else self._item(number, path, _size(path))
            if was_page and (item is None or item.page is None):
                problem = "a file that was removed or renamed" if item is None else item.rejected
                raise InputError(
                    f"{self.name}: the last run was cut off while it saved: expected the page of item {number} again, "
                    f"got {problem}: restore it, to make sure that nothing is lost"
                )
            if was_page and item is not None:
                yield item
            else:
                yield Item(self.name, number, rejected=f"item {number} could not be used when it was processed first")

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

    def _name(self, path: Path) -> bytes:
        return os.fsencode(path.relative_to(self._root).as_posix())

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
