"""Bytes from a file or a pipe, decompressed if they are gzip and counted before decompression."""

import gzip
import io
import zlib
from typing import BinaryIO, Final, cast

READ_ERRORS: Final = (OSError, EOFError, zlib.error)
"""Errors of reading: errors of the file system, and truncated or corrupt gzip data."""

_GZIP: Final = b"\x1f\x8b"
_BUFFER: Final = 2**18


class CountingReader(io.RawIOBase):
    """A reader that counts bytes before decompression. Closing it leaves the underlying file open."""

    def __init__(self, raw: BinaryIO) -> None:
        self._raw = raw
        self.count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        read = cast(io.BufferedReader, self._raw).readinto(buffer)  # type: ignore[arg-type]
        self.count += read
        return read


def decompressed(counted: CountingReader) -> io.BufferedReader:
    """Return the decompressed content. Raises READ_ERRORS.

    gzip is detected by its first bytes, because a pipe has no name.
    """
    plain: io.BufferedReader = io.BufferedReader(counted, _BUFFER)
    if plain.peek(2)[:2] != _GZIP:
        return plain
    return io.BufferedReader(gzip.GzipFile(fileobj=plain), _BUFFER)


def describe_error(error: Exception) -> str:
    """Describe one of READ_ERRORS."""
    if isinstance(error, EOFError):
        return "expected more gzip data, got the end of the file: it is truncated"
    if isinstance(error, gzip.BadGzipFile | zlib.error):
        return f"expected valid gzip data, got: {error}: the file is corrupt"
    return f"cannot be read: {error}"
