"""Ids of documents as values that numpy can sort and search, and which of many are known."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def names_of(ids: NDArray[np.int64]) -> NDArray[Any]:
    """The numbers of each id as one value of fixed width, in some order."""
    width = ids.shape[1] * 8
    return np.ascontiguousarray(ids, "<i8").view(f"S{width}").reshape(-1)


class KnownIds:
    """A set of ids that grows, 24 bytes each: sorted arrays, each smaller than the one before."""

    def __init__(self, ids: NDArray[np.int64]) -> None:
        self._names = [np.sort(names_of(ids))]

    def take(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """The places of those that are not known, each once; they are known afterwards."""
        names, places = np.unique(names_of(ids), return_index=True)
        new = np.ones(names.size, np.bool_)
        for known in self._names:
            if known.size:
                found = np.minimum(np.searchsorted(known, names), known.size - 1)
                new &= known[found] != names
        self._add(names[new])
        return np.sort(places[new])

    def _add(self, names: NDArray[Any]) -> None:
        # An array is merged with one as large or larger: each name is moved as many times as sizes can double.
        while self._names and self._names[-1].size <= names.size:
            names = np.sort(np.concatenate([self._names.pop(), names]))
        self._names.append(names)
