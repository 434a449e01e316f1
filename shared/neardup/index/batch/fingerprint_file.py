"""Files of fingerprints, in chunks of 64 MB (Manku 2007 §3.3), that can be mapped into memory and scanned."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from neardup.util import array_file

MAGIC: Final = b"NDPRINTS"
VERSION: Final = 1
CHUNK: Final = 64 * 2**20 // 8


def write_fingerprints(
    path: Path, fingerprints: NDArray[np.uint64], *, signature_version: str, chunk: int = CHUNK
) -> None:
    """Write the file, or replace it as a whole. The fingerprints keep their order."""
    starts = range(0, fingerprints.size, chunk)
    arrays = {str(number): fingerprints[start : start + chunk] for number, start in enumerate(starts)}
    about = {"signature_version": signature_version, "count": int(fingerprints.size)}
    array_file.write(path, magic=MAGIC, version=VERSION, about=about, arrays=arrays)


def is_fingerprint_file(path: Path) -> bool:
    """Return True if `path` is a fingerprint file, by its first bytes. Raises OSError if it cannot be read."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def read_fingerprints(path: Path, *, check: bool = True) -> Iterator[NDArray[np.uint64]]:
    """Return an iterator over the chunks, which are memory-mapped. Each chunk is read and checked when it is its turn.

    Without `check`, altered chunks are not detected, but a scan that stops early reads no more than it needs. Raises
    WrongState, CorruptState or OSError if the file cannot be used. The iterator raises CorruptState for an altered
    chunk.
    """
    mapped = array_file.map_arrays(path, magic=MAGIC, version=VERSION)
    return (each.checked() if check else each.array for each in mapped.values())
