"""A record of the files of a folder that runs have processed, in a file of 16 bytes per processed file.

    magic     16 bytes
    records   16 bytes each: a digest of the path within the folder (15 bytes), then 1 if it was a page, otherwise 0

Records are in the order of processing: the number of an item is the position of its record. The caller stores the
number of valid records together with its other state, which makes both change in one step. Records after them are left
over from a crash and are overwritten. A digest of 120 bits makes two paths with the same digest practically impossible:
among 10^9 files the probability is below 10^-18.
"""

import hashlib
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from neardup.errors import CorruptState, WrongState
from neardup.util.atomic_file import replacing, sync_file

_MAGIC: Final = b"neardup files 1\n"
_DIGEST_BYTES: Final = 15
_RECORD: Final = np.dtype([("digest", f"S{_DIGEST_BYTES}"), ("is_page", "u1")])
_NO_FILE: Final = bytes(_RECORD.itemsize)


class Unfinished(NamedTuple):
    """A file that was processed before a save that was cut off."""

    digest: bytes
    is_page: bool


class ProcessedFiles:
    """The processed files of one folder. Needs 15 bytes of memory per file that was processed before.

    `unfinished` lists the files after the first `count`. They must be processed again, in this order, before others.
    """

    def __init__(self, path: Path, records: NDArray[np.void], count: int) -> None:
        self._path = path
        self._before = np.sort(records["digest"])
        self._added: list[bytes] = []
        """Records that are not on disk."""
        self._on_disk = len(records)
        self.unfinished = [
            Unfinished(bytes(raw[:_DIGEST_BYTES]), bool(raw[_DIGEST_BYTES]))
            for raw in (each.tobytes() for each in records[count:])
        ]

    @classmethod
    def open(cls, path: Path, count: int, unfinished: int, names: Iterable[bytes]) -> Self:
        """Open or create the record of a folder, of which the first `count` + `unfinished` records are valid.

        Releases before this one stored only the count, and processed files in the order of their paths. If there is no
        record, the first `count` of `names`, the paths in this order, are taken as processed. Raises StateError.
        """
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            records = [digest_of(name) + b"\x01" for name in islice(names, count)]
            # Files may have been removed since.
            records += [_NO_FILE] * (count - len(records))
            with replacing(path) as file:
                file.write(_MAGIC + b"".join(records))
            unfinished = 0
        return cls(path, _read(path, count + unfinished), count)

    def __len__(self) -> int:
        return self._on_disk + len(self._added)

    def __contains__(self, digest: bytes) -> bool:
        """Return True if a file was processed before this run or is in `unfinished`."""
        key = np.array(digest, self._before.dtype)
        place = self._before.searchsorted(key)
        return bool(np.any(self._before[place : place + 1] == key))

    def add(self, digest: bytes, *, is_page: bool) -> int:
        """Record a file as processed; durable after the next `save`. Return the number of its item."""
        self._added.append(digest + (b"\x01" if is_page else b"\x00"))
        return len(self) - 1

    def save(self, count: int) -> None:
        """Make the first `count` records durable. The others follow with the next save."""
        new = count - self._on_disk
        if new <= 0:
            return
        with self._path.open("r+b") as file:
            file.seek(len(_MAGIC) + self._on_disk * _RECORD.itemsize)
            file.write(b"".join(self._added[:new]))
            file.truncate()
            sync_file(file)
        self._on_disk = count
        del self._added[:new]


def digest_of(name: bytes) -> bytes:
    """Return the digest of a path within the folder."""
    return hashlib.blake2b(name, digest_size=_DIGEST_BYTES).digest()


def _read(path: Path, count: int) -> NDArray[np.void]:
    try:
        with path.open("rb") as file:
            magic = file.read(len(_MAGIC))
            records = np.fromfile(file, _RECORD, count)
    except OSError as error:
        raise CorruptState(f"{path}: expected the processed files of a folder: {error}") from error
    if magic != _MAGIC:
        raise WrongState(f"{path}: expected {_MAGIC!r}, got {magic!r}: use the release that wrote it")
    if len(records) < count:
        raise CorruptState(
            f"{path}: expected the records of {count:,} processed files, got {len(records):,}: restore it, or process "
            "the folder again with --again"
        )
    return records
