"""Bytes from a file or a pipe, decompressed if they are gzip, and counted as they are read."""

import gzip
import io
import zlib
from typing import BinaryIO, Final, cast

READ_ERRORS: Final = (OSError, EOFError, zlib.error)
"""What reading may raise: the file system's errors, and gzip that is truncated or corrupt."""

_GZIP: Final = b"\x1f\x8b"
_BUFFER: Final = 2**18


class CountingReader(io.RawIOBase):
    """Passes reads on and counts the bytes, as they are in the file. Closing it leaves the file open."""

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
    """The content. gzip is told by its first bytes, not by a name, which a pipe has not. Raises READ_ERRORS."""
    plain: io.BufferedReader = io.BufferedReader(counted, _BUFFER)
    if plain.peek(2)[:2] != _GZIP:
        return plain
    return io.BufferedReader(gzip.GzipFile(fileobj=plain), _BUFFER)


def describe_error(error: Exception) -> str:
    """One of READ_ERRORS in words."""
    if isinstance(error, EOFError):
        return "expected more gzip data, the file is truncated"
    if isinstance(error, gzip.BadGzipFile | zlib.error):
        return f"expected gzip data, the file is corrupt: {error}"
    return f"cannot be read: {error}"
