"""A file of named arrays under a header: the form of every state file of the index.

    8 bytes   magic
    4 bytes   version, little-endian
    4 bytes   length of the header
    4 bytes   CRC-32 of the header
    header    JSON: what the writer says, and name, type, size and CRC-32 of each array
    arrays    little-endian, each at a multiple of 4096 bytes, so that they can be mapped

A file is written beside its place and renamed when it is on the disk: a crash leaves the old one or the new one.
"""

import json
import os
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from neardup.errors import CorruptState, WrongState

_START: Final = struct.Struct("<8sIII")
_ALIGN: Final = 4096
_PIECE: Final = 1 << 24


class Contents(NamedTuple):
    """What a file held."""

    about: dict[str, Any]
    arrays: dict[str, NDArray[Any]]


def write(
    path: Path, *, magic: bytes, version: int, about: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> None:
    """Write and make durable. Arrays must be contiguous."""
    listed = [
        {"name": name, "dtype": array.dtype.str, "size": array.size, "crc": _crc(array)}
        for name, array in arrays.items()
    ]
    header = json.dumps({"about": dict(about), "arrays": listed}).encode()
    beside = path.with_name(path.name + ".new")
    with beside.open("wb") as file:
        file.write(_START.pack(magic, version, len(header), zlib.crc32(header)))
        file.write(header)
        for array in arrays.values():
            file.write(bytes(-file.tell() % _ALIGN))
            file.write(_bytes(array))
        file.flush()
        os.fsync(file.fileno())
    os.replace(beside, path)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def read_about(path: Path, *, magic: bytes, version: int) -> dict[str, Any]:
    """Only what the writer said. Raises WrongState and CorruptState as `read` does."""
    with path.open("rb") as file:
        about: dict[str, Any] = _header(file, path, magic, version)["about"]
        return about


def read(path: Path, *, magic: bytes, version: int, mapped: bool = False) -> Contents:
    """All of it, each array checked against its CRC-32; with `mapped`, arrays are read-only maps and not checked.

    Raises WrongState when it is another kind or version of file, CorruptState when it is torn or altered, OSError when
    it cannot be opened.
    """
    arrays: dict[str, NDArray[Any]] = {}
    with path.open("rb") as file:
        header = _header(file, path, magic, version)
        size_of_file = os.fstat(file.fileno()).st_size
        at = file.tell()
        for each in header["arrays"]:
            at += -at % _ALIGN
            dtype = np.dtype(each["dtype"])
            nbytes = dtype.itemsize * each["size"]
            if at + nbytes > size_of_file:
                raise CorruptState(
                    f"{path}: expected {at + nbytes:,} bytes at least, got {size_of_file:,}; it is torn, delete it and "
                    "the log rebuilds it"
                )
            if mapped and nbytes:
                arrays[each["name"]] = np.memmap(file, dtype, "r", at, (each["size"],))
            else:
                arrays[each["name"]] = _array(file, at, dtype, each, path)
            at += nbytes
    return Contents(header["about"], arrays)


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


def _array(file: BinaryIO, at: int, dtype: np.dtype[Any], each: Mapping[str, Any], path: Path) -> NDArray[Any]:
    array = np.empty(each["size"], dtype)
    if array.size:
        file.seek(at)
        view = _bytes(array)
        crc = done = 0
        # Read and check piece by piece, while a piece is still in the cache.
        while done < len(view):
            count = file.readinto(view[done : done + _PIECE])  # type: ignore[attr-defined]
            if not count:
                raise CorruptState(f"{path}: expected {len(view):,} bytes of {each['name']}, got {done:,}; it is torn")
            crc = zlib.crc32(view[done : done + count], crc)
            done += count
        if crc != each["crc"]:
            raise CorruptState(f"{path}: expected checksum {each['crc']:08x} of {each['name']}, got {crc:08x}")
    return array


def _crc(array: NDArray[Any]) -> int:
    return zlib.crc32(_bytes(array))


def _bytes(array: NDArray[Any]) -> memoryview:
    return memoryview(array.view(np.uint8).data)
