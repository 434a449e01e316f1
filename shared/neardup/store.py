"""An owner's store: bytes on disk, with the offset of the log that they belong to.

RocksDB under the state directory. Changes are kept in memory until `save`, which writes them and the offset in
one atomic, synced batch: after any crash, data and offset belong together. The first entry names layout
version and partition; opening anything else is an error that says so.
"""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final, cast

from rocksdict import AccessType, BlockBasedOptions, Options, Rdict, WriteBatch, WriteOptions

from neardup.errors import CorruptState, WrongState

VERSION: Final = 2

_IDENTITY: Final = b"\x00identity"
_OFFSET: Final = b"\x00offset"


class Store:
    """Bytes to bytes. Keys must not start with a zero byte. One writer at a time."""

    def __init__(self, path: Path, partition: str) -> None:
        path.mkdir(parents=True, exist_ok=True)
        try:
            self._db = Rdict(str(path / "store"), _options())
        except Exception as error:  # rocksdict raises a bare Exception for everything
            raise CorruptState(
                f"{path}: RocksDB cannot open it: {error}. If another worker uses the directory, give each its own "
                "NEARDUP_STATE; otherwise delete it and the log rebuilds it"
            ) from error
        self._changes: dict[bytes, bytes | None] = {}
        expected = f"neardup store {VERSION} {partition}".encode()
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

    def delete(self, key: bytes) -> None:
        """Remove a value, if there is one; durable after the next `save`."""
        self._changes[key] = None

    def scan(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Keys that start with `prefix` and their newest values, in no order. Changes made meanwhile are missed."""
        changed = {key: value for key, value in self._changes.items() if key.startswith(prefix)}
        for key, value in cast(Iterator[tuple[bytes, bytes]], self._db.items(from_key=prefix)):
            if not key.startswith(prefix):
                break
            if key not in changed:
                yield key, value
        for key, newest in changed.items():
            if newest is not None:
                yield key, newest

    def save(self, offset: int) -> None:
        """Make all changes and the offset durable together."""
        batch = WriteBatch(raw_mode=True)
        for key, value in self._changes.items():
            if value is None:
                batch.delete(key)
            else:
                batch.put(key, value)
        batch.put(_OFFSET, struct.pack("<q", offset))
        options = WriteOptions()
        options.sync = True
        self._db.write(batch, options)
        self._changes.clear()

    def close(self) -> None:
        """Release the files; unsaved changes are lost."""
        self._db.close()


def peek(path: Path, key: bytes) -> bytes | None:
    """A saved value of a store that a worker may have open. Raises CorruptState."""
    try:
        db = Rdict(str(path / "store"), _options(), access_type=AccessType.read_only())
    except Exception as error:
        raise CorruptState(f"{path}: RocksDB cannot read it: {error}") from error
    try:
        value: bytes | None = db.get(key)
        return value
    finally:
        db.close()


def _options() -> Options:
    options = Options(raw_mode=True)
    tables = BlockBasedOptions()
    # Most lookups are for fingerprints never seen before: a Bloom filter answers them from memory.
    tables.set_bloom_filter(10, False)
    options.set_block_based_table_factory(tables)
    return options
