"""Rows in groups, as arrays: `group` has a number for each row, the same for rows that belong together."""

import numpy as np
from numpy.typing import NDArray


def first_of_each(group: NDArray[np.uint32], order: NDArray[np.int64]) -> NDArray[np.uint32]:
    """For each row the one of its group that stands first in `order`, which has every row once.

    Groups are named by row numbers.
    """
    first = np.empty(group.size, np.uint32)
    backwards = order[::-1]
    # Of all that are assigned to one place the last stays.
    first[group[backwards]] = backwards
    return first[group]


def sizes(group: NDArray[np.uint32]) -> NDArray[np.int64]:
    """For each row how many rows its group has. Groups are named by row numbers."""
    return np.bincount(group, minlength=group.size)[group]
