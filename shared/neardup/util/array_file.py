"""Files of named arrays with a header: the format of all state files of the index.

    8 bytes   magic
    4 bytes   version, little-endian
    4 bytes   length of the header
    4 bytes   CRC-32 of the header
    header    JSON: the values of the writer, and name, type, size and CRC-32 of each array
    arrays    little-endian, each at a multiple of 4096 bytes, so that they can be mapped

A file is replaced as a whole (see `atomic_file`): after a crash it has either the old or the new contents.
"""

import json
import os
import struct
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from neardup.errors import CorruptState, WrongState
from neardup.util.atomic_file import replacing

_START: Final = struct.Struct("<8sIII")
_ALIGN: Final = 4096
_PIECE: Final = 1 << 24


class Contents(NamedTuple):
    """The contents of a file."""

    about: dict[str, Any]
    arrays: dict[str, NDArray[Any]]


def write(
    path: Path, *, magic: bytes, version: int, about: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> None:
    """Write the file, or replace it, and wait until it is on the disk. The arrays must be contiguous."""
    listed = [
        {"name": name, "dtype": array.dtype.str, "size": array.size, "crc": _crc(array)}
        for name, array in arrays.items()
    ]
    header = json.dumps({"about": dict(about), "arrays": listed}).encode()
    with replacing(path) as file:
        file.write(_START.pack(magic, version, len(header), zlib.crc32(header)))
        file.write(header)
        for array in arrays.values():
            file.write(bytes(-file.tell() % _ALIGN))
            file.write(_bytes(array))


def read_about(path: Path, *, magic: bytes, version: int) -> dict[str, Any]:
    """Return the values of the writer without reading the arrays. Raises the same errors as `read`."""
    with path.open("rb") as file:
        about: dict[str, Any] = _header(file, path, magic, version)["about"]
        return about


def read(path: Path, *, magic: bytes, version: int) -> Contents:
    """Read the file and check each array against its CRC-32.

    Raises WrongState for another kind or version of file, CorruptState if it is torn or altered, and OSError if it
    cannot be opened.
    """
    with path.open("rb") as file:
        header = _header(file, path, magic, version)
        arrays = {each["name"]: _array(file, at, each, path) for each, at in _places(file, header, path)}
    return Contents(header["about"], arrays)


def map_arrays(path: Path, *, magic: bytes, version: int) -> dict[str, "MappedArray"]:
    """Map the arrays into memory, read-only. They are read from the disk on use. Raises the same errors as `read`.

    The checksums of the arrays are not checked here, as that would read all arrays; see `MappedArray.checked`.
    """
    with path.open("rb") as file:
        header = _header(file, path, magic, version)
        return {
            each["name"]: MappedArray(path, each["name"], each["crc"], _map(file, at, each))
            for each, at in _places(file, header, path)
        }


class MappedArray(NamedTuple):
    """A mapped array with its checksum from the header."""

    path: Path
    name: str
    crc: int
    array: NDArray[Any]

    def checked(self) -> NDArray[Any]:
        """Read the whole array, check it and return it. Raises CorruptState if it was altered."""
        _require(self.path, self.name, self.crc, _crc(self.array))
        return self.array


def _header(file: BinaryIO, path: Path, magic: bytes, version: int) -> dict[str, Any]:
    start = file.read(_START.size)
    if len(start) < _START.size:
        raise CorruptState(f"{path}: expected a header of {_START.size} bytes, got {len(start)}; it is torn")
    got_magic, got_version, length, crc = _START.unpack(start)
    if got_magic != magic:
        raise WrongState(f"{path}: expected a file that begins with {magic!r}, got {got_magic!r}")
    if got_version != version:
        raise WrongState(f"{path}: expected version {version}, got {got_version}; use the release that wrote it")
    raw = file.read(length)
    if zlib.crc32(raw) != crc:
        raise CorruptState(f"{path}: expected header checksum {crc:08x}, got {zlib.crc32(raw):08x}")
    header: dict[str, Any] = json.loads(raw)
    return header


def _places(file: BinaryIO, header: Mapping[str, Any], path: Path) -> Iterator[tuple[Mapping[str, Any], int]]:
    """Yield the header entry of each array and its offset in the file."""
    size_of_file = os.fstat(file.fileno()).st_size
    at = file.tell()
    for each in header["arrays"]:
        at += -at % _ALIGN
        nbytes = np.dtype(each["dtype"]).itemsize * each["size"]
        if at + nbytes > size_of_file:
            raise CorruptState(
                f"{path}: expected {at + nbytes:,} bytes at least, got {size_of_file:,}; it is torn, delete it and "
                "the log rebuilds it"
            )
        yield each, at
        at += nbytes


def _map(file: BinaryIO, at: int, each: Mapping[str, Any]) -> NDArray[Any]:
    if not each["size"]:
        return np.empty(0, each["dtype"])
    return np.memmap(file, each["dtype"], "r", at, (each["size"],))


def _array(file: BinaryIO, at: int, each: Mapping[str, Any], path: Path) -> NDArray[Any]:
    array = np.empty(each["size"], each["dtype"])
    if array.size:
        file.seek(at)
        view = _bytes(array)
        crc = done = 0
        # Each piece is checked right after it is read, while it is still in the cache.
        while done < len(view):
            count = file.readinto(view[done : done + _PIECE])  # type: ignore[attr-defined]
            if not count:
                raise CorruptState(f"{path}: expected {len(view):,} bytes of {each['name']}, got {done:,}; it is torn")
            crc = zlib.crc32(view[done : done + count], crc)
            done += count
        _require(path, each["name"], each["crc"], crc)
    return array


def _require(path: Path, name: str, expected: int, got: int) -> None:
    if got != expected:
        raise CorruptState(f"{path}: expected checksum {expected:08x} of {name}, got {got:08x}")


def _crc(array: NDArray[Any]) -> int:
    return zlib.crc32(_bytes(array))


def _bytes(array: NDArray[Any]) -> memoryview:
    return memoryview(array.view(np.uint8).data)
