"""Pairs as a source finds them, a sorted range after the other, in files instead of memory."""

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
    """Pairs in files without a name: they end with the arrays that are mapped from them, or with the process."""
    directory.mkdir(parents=True, exist_ok=True)
    with ExitStack() as open_files:
        yield PairFiles([open_files.enter_context(tempfile.TemporaryFile(dir=directory)) for _ in Pairs._fields])


class PairFiles:
    """A file for each column."""

    def __init__(self, columns: Sequence[IO[bytes]]) -> None:
        self._columns = columns

    def add(self, pairs: NDArray[np.uint64], scores: NDArray[np.float32]) -> None:
        """The next range: a << 32 | b, all greater than those before."""
        a, b = (pairs >> np.uint64(32)).astype(np.uint32), pairs.astype(np.uint32)
        for file, values in zip(self._columns, (a, b, scores), strict=True):
            file.write(values.data)

    def mapped(self) -> Pairs:
        """All so far."""
        a, b, score = self._columns
        return Pairs(_mapped(a, np.uint32), _mapped(b, np.uint32), _mapped(score, np.float32))


def _mapped(file: IO[bytes], dtype: type[Any]) -> NDArray[Any]:
    file.flush()
    # A file without a byte cannot be mapped. As a plain array: slicing a memmap costs ten times as much.
    return np.memmap(file, dtype, "r").view(np.ndarray) if file.tell() else np.empty(0, dtype)
