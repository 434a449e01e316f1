"""An owner's store: keys and values in RocksDB, with the log offset up to which they are complete.

Changes stay in memory until they are saved together with the offset, in one atomic, synced batch. After any crash, data
and offset are consistent. Changes can be frozen and written by another thread while new changes are made. The first
entry names the layout version and the partition; a store of another version or partition is refused.
"""

import errno
import os
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from rocksdict import AccessType, BlockBasedOptions, Cache, Options, Rdict, WriteBatch, WriteOptions

from neardup.errors import CorruptState, StateError, StateInUse, StateUnavailable, WrongState

VERSION: Final = 2

WRITE_BUFFER_BYTES: Final = 16 * 2**20
WRITE_BUFFERS: Final = 2
"""Number of write buffers: one is filled while the other is flushed."""
READ_CACHE_BYTES: Final = 16 * 2**20
_COMPACTION_BYTES_PER_SECOND: Final = 64 * 2**20
"""Rate limit of RocksDB's flushes and compactions: ten times what an owner writes at 4,000 pages per second. It is low
enough that a compaction of a few hundred megabytes takes a fifth of a core for a while instead of a whole core."""
_RATE_LIMIT_PERIOD_US: Final = 100_000
_FAIRNESS: Final = 10
"""One in this number of requests lets a compaction go before a flush, so flushes rarely wait for compactions."""

_IDENTITY: Final = b"\x00identity"
_OFFSET: Final = b"\x00offset"
_MEMORY: Final = ("rocksdb.size-all-mem-tables", "rocksdb.block-cache-usage", "rocksdb.estimate-table-readers-mem")


class Store:
    """A map of bytes to bytes. Keys must not start with a zero byte.

    Not thread-safe, except for the function that `freeze` returns. Every method may block and may raise StateError. A
    corrupt block always raises an error and never looks like a missing key.
    """

    def __init__(self, path: Path, partition: str) -> None:
        path.mkdir(parents=True, exist_ok=True)
        self._path = path
        try:
            self._db = Rdict(str(path / "store"), _options())
        except Exception as error:  # rocksdict raises a bare Exception for everything
            if _is_disk_error(error):
                raise self._unavailable(error) from error
            if _is_locked(error):
                raise StateInUse(
                    f"{path}: already in use: give each worker its own NEARDUP_STATE, or wait until the other process "
                    f"ends ({error})"
                ) from error
            raise CorruptState(
                f"{path}: expected a RocksDB store, RocksDB cannot open it: {error}; delete it and the log rebuilds it"
            ) from error
        self._changes: dict[bytes, bytes | None] = {}
        self._frozen: dict[bytes, bytes | None] = {}
        """Changes that are being written: older than `_changes`, newer than the values on disk."""
        self.unsaved_bytes = 0
        """Approximate size of the changes since the last `freeze`. A key that is changed twice counts twice."""
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
            raise WrongState(
                f"{path}: expected {expected.decode()!r}, got {got!r}; set NEARDUP_STATE to another directory"
            )

    @property
    def offset(self) -> int:
        """The offset of the first record that is not part of the saved state."""
        raw = self._read(_OFFSET)
        return 0 if raw is None else int(struct.unpack("<q", raw)[0])

    @property
    def cached_bytes(self) -> int:
        """Memory of RocksDB in bytes: memtables, cached blocks, filters and indexes."""
        return sum(int(self._db.property_int_value(name) or 0) for name in _MEMORY)

    def get(self, key: bytes) -> bytes | None:
        """Return the newest value, saved or not; None if there is none."""
        for changes in (self._changes, self._frozen):
            if key in changes:
                return changes[key]
        return self._read(key)

    def put(self, key: bytes, value: bytes) -> None:
        """Set a value; durable after the next save."""
        self._changes[key] = value
        self.unsaved_bytes += len(key) + len(value)

    def delete(self, key: bytes) -> None:
        """Remove a value, if there is one; durable after the next save."""
        self._changes[key] = None
        self.unsaved_bytes += len(key)

    def scan(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield keys that start with `prefix` and their newest values, in any order.

        Changes made during the iteration are missed.
        """
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
        """Collect the changes so far; the returned function makes them and the offset durable together.

        Call the returned function at most once, before the next `freeze`. Another thread may call it.
        """
        # Changes that were frozen before but not saved are included.
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
            # Sync in a separate call: it releases the GIL while it waits for the disk, whereas `write` holds the GIL.
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
        """Yield saved entries, starting at a key. RocksDB's `items` would end silently at a corrupt block."""
        found = self._db.iter()
        found.seek(first)
        while found.valid():
            yield found.key(), found.value()
            found.next()
        try:
            found.status()
        except Exception as error:
            del found  # the iterator keeps the files open, and this frame lives as long as the error
            raise self._altered(error) from error

    def _altered(self, error: Exception) -> CorruptState:
        return CorruptState(
            f"{self._path}: expected a readable store, RocksDB cannot read it: {error}; delete it and the log rebuilds "
            "it"
        )

    def _unavailable(self, error: Exception) -> StateUnavailable:
        return StateUnavailable(
            f"{self._path}: expected to write the state, got: {error}; free disk space or make the directory writable, "
            "and start again: the worker resumes from the last checkpoint"
        )


def peek(path: Path, key: bytes) -> bytes | None:
    """Return a saved value of a store that a worker may have open. Raises CorruptState."""
    try:
        db = Rdict(str(path / "store"), _options(), access_type=AccessType.read_only())
    except Exception as error:
        raise CorruptState(f"{path}: expected a readable store, RocksDB cannot read it: {error}") from error
    try:
        value: bytes | None = db.get(key)
        return value
    finally:
        db.close()


def _is_disk_error(error: Exception) -> bool:
    message = str(error)
    return any(
        os.strerror(code) in message for code in (errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EDQUOT, errno.EIO)
    )


def _is_locked(error: Exception) -> bool:
    # The first message is about another process, the second one about this process.
    return any(text in str(error) for text in ("While lock file: ", "lock hold by current process"))


def _options() -> Options:
    options = Options(raw_mode=True)
    tables = BlockBasedOptions()
    # Most lookups are for new fingerprints: a Bloom filter answers them from memory.
    tables.set_bloom_filter(10, False)
    # One cache per store: a worker needs this memory once per owner.
    tables.set_block_cache(Cache(READ_CACHE_BYTES))
    options.set_write_buffer_size(WRITE_BUFFER_BYTES)
    options.set_max_write_buffer_number(WRITE_BUFFERS)
    options.set_block_based_table_factory(tables)
    options.set_ratelimiter(_COMPACTION_BYTES_PER_SECOND, _RATE_LIMIT_PERIOD_US, _FAIRNESS)
    return options
