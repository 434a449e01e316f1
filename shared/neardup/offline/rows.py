"""Rows of gathered documents: found by the documents' ids, and the row that has a document's sketch."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from neardup.offline.gathered import Gathered

UNKNOWN: Final = -1
"""In place of a row."""


class Rows:
    """Finds rows by id; takes 32 bytes a document."""

    def __init__(self, documents: Gathered) -> None:
        names = _names(documents.id)
        self._order = np.argsort(names)
        self._names = names[self._order]

    def of(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """The row of each id (timestamp, partition, offset), UNKNOWN where it was not gathered."""
        if not self._names.size:
            return np.full(len(ids), UNKNOWN)
        wanted = _names(ids)
        places = np.minimum(np.searchsorted(self._names, wanted), self._names.size - 1)
        return np.where(self._names[places] == wanted, self._order[places], UNKNOWN)


def kept_rows(documents: Gathered) -> NDArray[np.int64]:
    """Of each row, the first one in the order of all pages that has the same selected shingles, and a sketch.

    Same bytes make same tokens, and these the same shingles: the weakest level of identity has the other two in it.
    Where nobody has a sketch, it is the row itself.
    """
    kept = np.arange(len(documents))
    if not len(documents):
        return kept
    shingles = np.asarray(documents.checksums[:, 2])
    without = np.diff(documents.starts) == 0
    order = np.lexsort((documents.rank, without, shingles[:, 1], shingles[:, 0]))
    ordered = shingles[order]
    first = np.concatenate([[True], (ordered[1:] != ordered[:-1]).any(axis=1)])
    leaders = order[first][np.cumsum(first) - 1]
    kept[order] = np.where(without[leaders], order, leaders)
    return kept


def _names(ids: NDArray[np.int64]) -> NDArray[Any]:
    # Three numbers as one value of fixed width: what numpy can sort and search, in some order.
    return np.ascontiguousarray(ids, "<i8").view("S24").reshape(-1)
