"""An owner's directory: what it knows, on disk, with the offset that it knows it up to.

RocksDB under the state directory. Changes are kept in memory until `save`, which writes them and the offset in
one atomic, synced batch: after any crash, data and offset belong together. The first entry names layout
version and partition; opening anything else is an error that says so.
"""

import struct
from pathlib import Path
from typing import Final

from rocksdict import Options, Rdict, WriteBatch, WriteOptions

from neardup.errors import CorruptState, WrongState

VERSION: Final = 1

_IDENTITY: Final = b"\x00identity"
_OFFSET: Final = b"\x00offset"


class Directory:
    """Bytes to bytes. Keys must not start with a zero byte. One writer at a time."""

    def __init__(self, path: Path, partition: str) -> None:
        path.mkdir(parents=True, exist_ok=True)
        try:
            self._db = Rdict(str(path / "directory"), Options(raw_mode=True))
        except Exception as error:  # rocksdict raises a bare Exception for everything
            raise CorruptState(
                f"{path}: RocksDB cannot open it: {error}. If another worker uses the directory, give each its own "
                "NEARDUP_STATE; otherwise delete it and the log rebuilds it"
            ) from error
        self._changes: dict[bytes, bytes] = {}
        expected = f"neardup directory {VERSION} {partition}".encode()
        try:
            got = self._db.get(_IDENTITY)
        except Exception as error:
            self._db.close()
            raise CorruptState(f"{path}: RocksDB cannot read it: {error}; delete it and the log rebuilds it") from error
        if got is None:
            self._db[_IDENTITY] = expected
        elif got != expected:
            self._db.close()
            raise WrongState(f"{path}: expected {expected.decode()!r}, got {got!r}; point NEARDUP_STATE elsewhere")

    @property
    def offset(self) -> int:
        """The offset up to which the saved state knows the log."""
        raw = self._db.get(_OFFSET)
        return 0 if raw is None else int(struct.unpack("<q", raw)[0])

    def get(self, key: bytes) -> bytes | None:
        """The newest value, saved or not."""
        if key in self._changes:
            return self._changes[key]
        value: bytes | None = self._db.get(key)
        return value

    def put(self, key: bytes, value: bytes) -> None:
        """Set a value; durable after the next `save`."""
        self._changes[key] = value

    def save(self, offset: int) -> None:
        """Make all changes and the offset durable together."""
        batch = WriteBatch(raw_mode=True)
        for key, value in self._changes.items():
            batch.put(key, value)
        batch.put(_OFFSET, struct.pack("<q", offset))
        options = WriteOptions()
        options.sync = True
        self._db.write(batch, options)
        self._changes.clear()

    def close(self) -> None:
        """Release the files; unsaved changes are lost."""
        self._db.close()
