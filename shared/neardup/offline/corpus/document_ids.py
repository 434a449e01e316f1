"""Document ids in sorted arrays: a growing set, and a lookup of row numbers.

An id is a row of integers, either (timestamp, partition, offset) or (partition, offset).
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

NO_ROW: Final = -1
"""Row number of a document that does not exist."""


def id_keys(ids: NDArray[np.int64]) -> NDArray[np.bytes_]:
    """Pack each id into one fixed-width value that numpy can sort and search. The order of the values is arbitrary."""
    width = ids.shape[1] * 8
    return np.ascontiguousarray(ids, "<i8").view(f"S{width}").reshape(-1)


class DocumentIdSet:
    """A growing set of ids, 24 bytes each, kept as sorted arrays of decreasing size."""

    def __init__(self, ids: NDArray[np.int64]) -> None:
        self._arrays = [np.sort(id_keys(ids))]

    def add_new(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Add ids. Return the positions of those that were not in the set, each id once, in ascending order."""
        keys, positions = np.unique(id_keys(ids), return_index=True)
        is_new = np.ones(keys.size, np.bool_)
        for array in self._arrays:
            if array.size:
                found = np.minimum(np.searchsorted(array, keys), array.size - 1)
                is_new &= array[found] != keys
        self._add(keys[is_new])
        return np.sort(positions[is_new])

    def _add(self, keys: NDArray[np.bytes_]) -> None:
        # Merge only arrays of similar size: each key is then moved a logarithmic number of times.
        while self._arrays and self._arrays[-1].size <= keys.size:
            keys = np.sort(np.concatenate([self._arrays.pop(), keys]))
        self._arrays.append(keys)


class RowIndex:
    """A lookup of row numbers by id, 32 bytes per row. Row `i` has the id `ids[i]`."""

    def __init__(self, ids: NDArray[np.int64]) -> None:
        keys = id_keys(ids)
        self._order = np.argsort(keys)
        self._keys = keys[self._order]

    def rows_of(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the row of each id, or NO_ROW if there is none."""
        if not self._keys.size:
            return np.full(len(ids), NO_ROW)
        wanted = id_keys(ids)
        positions = np.minimum(np.searchsorted(self._keys, wanted), self._keys.size - 1)
        return np.where(self._keys[positions] == wanted, self._order[positions], NO_ROW)
