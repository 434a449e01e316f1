"""Argument groups that the kernels of the index share: the queries of a batch and the buffers for their matches."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Queries(NamedTuple):
    """A batch of queries to one table, all with the same mask."""

    keys: NDArray[np.uint64]
    limits: NDArray[np.uint64]
    """Number of bits in which a match of each query may differ."""
    mask: np.uint64
    """The leading bits in which a match must agree, as ones."""
    cap: int
    """Maximum number of matches reported per query."""


class Buffers(NamedTuple):
    """Room for pairs of a query's number and a key that matches it. A kernel stops early when they are full."""

    query: NDArray[np.int64]
    key: NDArray[np.uint64]
