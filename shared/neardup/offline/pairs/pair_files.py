"""Temporary files for the pairs that a source finds."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from neardup.offline.pairs.pair_source import Pairs


@contextmanager
def pair_files(directory: Path) -> Iterator["PairFiles"]:
    """Create unnamed temporary files. The OS deletes them with the last array mapped from them or with the process."""
    directory.mkdir(parents=True, exist_ok=True)
    with ExitStack() as open_files:
        yield PairFiles([open_files.enter_context(tempfile.TemporaryFile(dir=directory)) for _ in Pairs._fields])


class PairFiles:
    """One temporary file per column of pairs."""

    def __init__(self, columns: Sequence[IO[bytes]]) -> None:
        self._columns = columns

    def add(self, pairs: NDArray[np.uint64], scores: NDArray[np.float32]) -> None:
        """Append a sorted range of pairs, a << 32 | b, all greater than the pairs added before."""
        a, b = (pairs >> np.uint64(32)).astype(np.uint32), pairs.astype(np.uint32)
        for file, values in zip(self._columns, (a, b, scores), strict=True):
            file.write(values.data)

    def mapped(self) -> Pairs:
        """Return all pairs so far as memory-mapped arrays."""
        a, b, score = self._columns
        return Pairs(_mapped(a, np.uint32), _mapped(b, np.uint32), _mapped(score, np.float32))


def _mapped(file: IO[bytes], dtype: type[Any]) -> NDArray[Any]:
    file.flush()
    # An empty file cannot be mapped. The view is a plain array, because slicing a memmap object is ten times slower.
    return np.memmap(file, dtype, "r").view(np.ndarray) if file.tell() else np.empty(0, dtype)
