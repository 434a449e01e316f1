"""Damage to files as caused by disks, operators and power cuts."""

import random
from pathlib import Path


def flip(path: Path, draw: random.Random) -> None:
    """Flip one bit of a byte."""
    data = bytearray(path.read_bytes())
    data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    path.write_bytes(data)


def cut(path: Path, draw: random.Random) -> None:
    """Cut off the end."""
    data = path.read_bytes()
    path.write_bytes(data[: draw.randrange(len(data))])


def blank(path: Path, draw: random.Random) -> None:
    """Overwrite a sector with zeros."""
    data = bytearray(path.read_bytes())
    start = draw.randrange(len(data))
    data[start : start + 512] = bytes(len(data[start : start + 512]))
    path.write_bytes(data)


DAMAGES = (flip, cut, blank)


def files_under(directory: Path) -> list[Path]:
    """Return the files that are not empty, in a fixed order, without RocksDB's diagnostic log."""
    found = (path for path in directory.rglob("*") if path.is_file() and path.stat().st_size)
    return sorted(path for path in found if not path.name.startswith(("LOG", "OPTIONS")))
