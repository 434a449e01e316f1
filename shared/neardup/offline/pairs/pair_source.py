"""The interface of pair sources."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from neardup.offline.corpus.columns import ColumnStore


class Pairs(NamedTuple):
    """Pairs of rows with `a` < `b`, each pair once and sorted. The source defines the meaning of `score`."""

    a: NDArray[np.uint32]
    b: NDArray[np.uint32]
    score: NDArray[np.float32]


class IgnoredKeys(NamedTuple):
    """Number of keys that were ignored because too many documents have them, and number of their postings."""

    common_keys: int
    common_postings: int


class PairSource(Protocol):
    """A finder of pairs of documents that may belong together.

    `name` is the name of the source in the settings. A source keeps its state about known rows in a directory, so that
    the next call handles only new rows: a call returns the pairs in which at least one row is `first_new` or later.
    Rows not in `kept` have no pairs. A repeated call with the same arguments, for example after a crash, returns the
    same pairs.
    """

    name: str

    def pairs(
        self,
        documents: ColumnStore,
        kept: NDArray[np.bool_],
        first_new: int,
        progress: Callable[[int, int], None],
    ) -> tuple[Pairs, IgnoredKeys]:
        """Return the new pairs. `progress` receives the number of steps done and the number of all steps."""
