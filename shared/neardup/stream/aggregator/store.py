"""An owner's store: bytes on disk, with the offset of the log that they belong to.

RocksDB under the state directory. Changes are kept in memory until they are saved, with the offset, in one atomic,
synced batch: after any crash, data and offset belong together. They may be frozen first, and be written by another
thread while new ones are made. The first entry names layout version and partition; opening anything else is an error
that says so.
"""

import errno
import os
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from rocksdict import AccessType, BlockBasedOptions, Cache, Options, Rdict, WriteBatch, WriteOptions

from neardup.errors import CorruptState, StateError, StateUnavailable, WrongState

VERSION: Final = 2

WRITE_BUFFER_BYTES: Final = 16 * 2**20
WRITE_BUFFERS: Final = 2
"""One fills while the other is written out."""
READ_CACHE_BYTES: Final = 16 * 2**20
_MERGED_BYTES_A_SECOND: Final = 64 * 2**20
"""What RocksDB writes when it merges files: ten times what an owner of 4000 pages a second has to save, and slow enough
that a merge of some hundred megabytes takes a fifth of a processor for a while, not all of it at once."""
_MERGE_STEP_US: Final = 100_000
_FLUSHES_FIRST: Final = 10
"""To one turn of merging: what is written out of memory must not wait for it."""

_IDENTITY: Final = b"\x00identity"
_OFFSET: Final = b"\x00offset"
_MEMORY: Final = ("rocksdb.size-all-mem-tables", "rocksdb.block-cache-usage", "rocksdb.estimate-table-readers-mem")


class Store:
    """Bytes to bytes. Keys must not start with a zero byte. One thread at a time, but for what `freeze` returned.

    Everything may block and raise StateError: what RocksDB finds altered is never taken for missing.
    """

    def __init__(self, path: Path, partition: str) -> None:
        path.mkdir(parents=True, exist_ok=True)
        self._path = path
        try:
            self._db = Rdict(str(path / "store"), _options())
        except Exception as error:  # rocksdict raises a bare Exception for everything
            if _is_of_the_disk(error):
                raise self._unavailable(error) from error
            raise CorruptState(
                f"{path}: RocksDB cannot open it: {error}. If another worker uses the directory, give each its own "
                "NEARDUP_STATE; otherwise delete it and the log rebuilds it"
            ) from error
        self._changes: dict[bytes, bytes | None] = {}
        self._frozen: dict[bytes, bytes | None] = {}
        """Changes that are on their way to the disk: older than `_changes`, newer than what is there."""
        self.unsaved_bytes = 0
        """About what the changes since the last `freeze` take; one that is changed twice counts twice."""
        expected = f"neardup store {VERSION} {partition}".encode()
        try:
            got = self._read(_IDENTITY)
            if got is None:
                self._db[_IDENTITY] = expected
        except StateError:
            self._db.close()
            raise
        except Exception as error:
            self._db.close()
            raise self._unavailable(error) from error
        if got not in (None, expected):
            self._db.close()
            raise WrongState(f"{path}: expected {expected.decode()!r}, got {got!r}; point NEARDUP_STATE elsewhere")

    @property
    def offset(self) -> int:
        """The offset up to which the saved state knows the log."""
        raw = self._read(_OFFSET)
        return 0 if raw is None else int(struct.unpack("<q", raw)[0])

    @property
    def cached_bytes(self) -> int:
        """Memory of RocksDB: what it has still to write out, and blocks, filters and indexes that it has read."""
        return sum(int(self._db.property_int_value(name) or 0) for name in _MEMORY)

    def get(self, key: bytes) -> bytes | None:
        """The newest value, saved or not."""
        for changes in (self._changes, self._frozen):
            if key in changes:
                return changes[key]
        return self._read(key)

    def put(self, key: bytes, value: bytes) -> None:
        """Set a value; durable when it is saved."""
        self._changes[key] = value
        self.unsaved_bytes += len(key) + len(value)

    def delete(self, key: bytes) -> None:
        """Remove a value, if there is one; durable when that is saved."""
        self._changes[key] = None
        self.unsaved_bytes += len(key)

    def scan(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Keys that start with `prefix` and their newest values, in no order. Changes made meanwhile are missed."""
        both = (self._frozen, self._changes)
        changed = {key: value for some in both for key, value in some.items() if key.startswith(prefix)}
        for key, value in self._saved_from(prefix):
            if not key.startswith(prefix):
                break
            if key not in changed:
                yield key, value
        for key, kept in changed.items():
            if kept is not None:
                yield key, kept

    def save(self, offset: int) -> None:
        """Make all changes and the offset durable together."""
        self.freeze(offset)()

    def freeze(self, offset: int) -> Callable[[], None]:
        """The changes so far; what is returned makes them and the offset durable together.

        It is called at most once, and before the next `freeze`; in another thread, if need be.
        """
        # What was frozen before and not saved is part of it.
        frozen = self._frozen | self._changes
        self._frozen, self._changes, self.unsaved_bytes = frozen, {}, 0
        return lambda: self._save(frozen, offset)

    def _save(self, frozen: dict[bytes, bytes | None], offset: int) -> None:
        batch = WriteBatch(raw_mode=True)
        for key, value in frozen.items():
            if value is None:
                batch.delete(key)
            else:
                batch.put(key, value)
        batch.put(_OFFSET, struct.pack("<q", offset))
        try:
            self._db.write(batch, WriteOptions())
            # Apart from the write, which lets no other thread work: this one waits for the disk, and does.
            self._db.flush_wal(True)
        except Exception as error:
            raise self._unavailable(error) from error
        if self._frozen is frozen:
            self._frozen = {}

    def close(self) -> None:
        """Release the files; unsaved changes are lost."""
        self._db.close()

    def _read(self, key: bytes) -> bytes | None:
        try:
            value: bytes | None = self._db.get(key)
            return value
        except Exception as error:
            raise self._altered(error) from error

    def _saved_from(self, first: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Not by the iterator of `items`, which ends at the first altered block as if there were no more."""
        found = self._db.iter()
        found.seek(first)
        while found.valid():
            yield found.key(), found.value()
            found.next()
        try:
            found.status()
        except Exception as error:
            del found  # it keeps the files open, and this frame lives as long as the error does
            raise self._altered(error) from error

    def _altered(self, error: Exception) -> CorruptState:
        return CorruptState(f"{self._path}: RocksDB cannot read it: {error}; delete it and the log rebuilds it")

    def _unavailable(self, error: Exception) -> StateUnavailable:
        return StateUnavailable(
            f"{self._path}: expected to write the state, got: {error}; free some space or make it writable, and start "
            "again: it goes on from the last checkpoint"
        )


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


def _is_of_the_disk(error: Exception) -> bool:
    said = str(error)
    return any(os.strerror(code) in said for code in (errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EDQUOT, errno.EIO))


def _options() -> Options:
    options = Options(raw_mode=True)
    tables = BlockBasedOptions()
    # Most lookups are for fingerprints never seen before: a Bloom filter answers them from memory.
    tables.set_bloom_filter(10, False)
    # A worker has a store for each of its owners: what is kept in memory counts as often.
    tables.set_block_cache(Cache(READ_CACHE_BYTES))
    options.set_write_buffer_size(WRITE_BUFFER_BYTES)
    options.set_max_write_buffer_number(WRITE_BUFFERS)
    options.set_block_based_table_factory(tables)
    options.set_ratelimiter(_MERGED_BYTES_A_SECOND, _MERGE_STEP_US, _FLUSHES_FIRST)
    return options
