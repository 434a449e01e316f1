"""Rows in groups, as arrays: `group` has a number for each row, the same for rows that belong together."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def first_of_each(group: NDArray[np.uint32], *keys: NDArray[Any]) -> NDArray[np.uint32]:
    """For each row the one of its group with the least key; where that is equal, the next key decides."""
    ordered = np.lexsort((*reversed(keys), group))
    firsts = np.flatnonzero(np.diff(group[ordered], prepend=-1))
    first = np.empty(group.size, np.uint32)
    first[ordered] = np.repeat(ordered[firsts], np.diff(firsts, append=group.size))
    return first


def sizes(group: NDArray[np.uint32]) -> NDArray[np.int64]:
    """For each row how many rows its group has. Groups are named by row numbers."""
    return np.bincount(group, minlength=group.size)[group]
