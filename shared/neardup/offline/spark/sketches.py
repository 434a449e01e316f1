"""Packed sketches from columns of Arrow batches, in the form that kernels take."""

import numpy as np
import pyarrow
from numpy.typing import NDArray


def words_of(column: pyarrow.BinaryArray) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Return all sketches of a column in one array, their starts, and the end of the last sketch."""
    if not len(column):
        return np.empty(0, np.uint64), np.zeros(1, np.int64)
    _, offsets, data = column.buffers()
    ends = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1].astype(np.int64)
    # Copied, because kernels are compiled for writable arrays.
    words = np.frombuffer(data, "<u8", int(ends[-1] - ends[0]) // 8, int(ends[0])).astype(np.uint64)
    return words, (ends - ends[0]) // 8


def sketches_of(column: pyarrow.BinaryArray) -> list[NDArray[np.uint64]]:
    """Return the sketches of a column."""
    words, starts = words_of(column)
    return [words[start:end] for start, end in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)]
