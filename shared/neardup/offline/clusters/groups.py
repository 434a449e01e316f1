"""Groups of rows as an array with the group number of each row. Group numbers are row numbers."""

import numpy as np
from numpy.typing import NDArray


def first_of_each(group: NDArray[np.uint32], order: NDArray[np.int64]) -> NDArray[np.uint32]:
    """Return for each row the row of its group that comes first in `order`, a permutation of all rows."""
    first = np.empty(group.size, np.uint32)
    backwards = order[::-1]
    # The last assignment to a position wins.
    first[group[backwards]] = backwards
    return first[group]


def sizes(group: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Return for each row the size of its group."""
    return np.bincount(group, minlength=group.size)[group]
