"""Rows of documents as input for sources of pairs, without a corpus."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from neardup.offline.corpus.columns import ColumnStore


@dataclass(frozen=True)
class _Rows:
    words: NDArray[np.uint64]
    starts: NDArray[np.int64]
    fingerprint: NDArray[np.uint64]

    def __len__(self) -> int:
        return int(self.starts.size) - 1


def rows_of(sketches: Sequence[NDArray[np.uint64]], fingerprints: Sequence[int] = ()) -> ColumnStore:
    """Return documents that have only these sketches and fingerprints."""
    words = np.concatenate([np.empty(0, np.uint64), *sketches])
    starts = np.cumsum([0, *(each.size for each in sketches)])
    return cast(ColumnStore, _Rows(words, starts, np.array(fingerprints, np.uint64)))
