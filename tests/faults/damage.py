"""What disks, operators and power cuts do to files."""

import random
from pathlib import Path


def flip(path: Path, draw: random.Random) -> None:
    """One bit of one byte."""
    data = bytearray(path.read_bytes())
    data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    path.write_bytes(data)


def cut(path: Path, draw: random.Random) -> None:
    """The end is missing."""
    data = path.read_bytes()
    path.write_bytes(data[: draw.randrange(len(data))])


def blank(path: Path, draw: random.Random) -> None:
    """A sector reads as zeros."""
    data = bytearray(path.read_bytes())
    start = draw.randrange(len(data))
    data[start : start + 512] = bytes(len(data[start : start + 512]))
    path.write_bytes(data)


DAMAGES = (flip, cut, blank)


def files_under(directory: Path) -> list[Path]:
    """Those with something in them, in a fixed order; RocksDB's own log of what it did says nothing of the state."""
    found = (path for path in directory.rglob("*") if path.is_file() and path.stat().st_size)
    return sorted(path for path in found if not path.name.startswith(("LOG", "OPTIONS")))
