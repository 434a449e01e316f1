"""Pairs of documents that a source brought together, and where they come from."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from neardup.offline.corpus.columns import ColumnStore


class Pairs(NamedTuple):
    """Rows of documents, `a` before `b` in number, each pair once, sorted; what `score` is, its source says."""

    a: NDArray[np.uint32]
    b: NDArray[np.uint32]
    score: NDArray[np.float32]


class IgnoredKeys(NamedTuple):
    """What was left out: keys that too many documents have, and how many of these documents there are."""

    common_keys: int
    common_postings: int


class PairSource(Protocol):
    """Brings documents together that may belong together.

    `name` is the one in the settings. A source keeps what it needs of the rows it has seen in `directory`, so that the
    next call pairs only what is new: a call returns the pairs with at least one row from `first_new` on. Rows not in
    `kept` have no pairs. Calling it again with the same arguments, after a crash, returns the same.
    """

    name: str

    def pairs(
        self,
        documents: ColumnStore,
        kept: NDArray[np.bool_],
        first_new: int,
        progress: Callable[[int, int], None],
    ) -> tuple[Pairs, IgnoredKeys]:
        """The new pairs. `progress`: steps done, of all."""
