"""Copies: documents that are the same on one of Broder's three levels. One of them is kept, and compared with others.

A level implies the next as a rule, and need not: the same bytes, served with another charset, have other tokens. What
any level brings together is one group.
"""

from concurrent.futures import ThreadPoolExecutor
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from neardup.kernels.offline.leaders import components, first_equal
from neardup.matching.match import RELATIONS
from neardup.offline.clusters.groups import first_of_each
from neardup.offline.corpus.columns import ColumnStore
from neardup.util.parallel import CORES
from neardup.util.scratch import SALT

LEVELS: Final = 3
"""Number of levels of identity. Each level is a column of the checksums."""
COPY_RELATIONS: Final = RELATIONS[:LEVELS]
"""Relation of two documents that agree on each level: identical, same-text, same-shingles."""


class Copies(NamedTuple):
    """For each row the one that is kept in its place: the first in the order of all pages that has a sketch.

    `comparable`: rows that are kept and have one. Only where no copy has a sketch (the document that has it is not in
    the corpus yet) the first is kept without.
    """

    kept: NDArray[np.uint32]
    comparable: NDArray[np.bool_]


def find_copies(documents: ColumnStore) -> Copies:
    """Group all rows."""
    with ThreadPoolExecutor(CORES) as pool:
        links = list(pool.map(lambda level: _links(documents.checksums[:, level]), range(LEVELS)))
    a, b = (np.concatenate(side) for side in zip(*links, strict=True))
    group = components(len(documents), a, b)
    sketched = np.diff(documents.starts) > 0
    order = documents.order
    kept = first_of_each(group, np.concatenate([order[sketched[order]], order[~sketched[order]]]))
    return Copies(kept, sketched & (kept == np.arange(len(documents))))


def levels(checksums: NDArray[np.uint64], others: NDArray[np.uint64]) -> NDArray[np.int8]:
    """The strongest level on which documents agree, pair by pair: its place in RELATIONS; LEVELS if there is none.

    Both have the shape (pairs, levels, words of a checksum).
    """
    agree = (checksums == others).all(axis=2)
    none = np.ones((len(agree), 1), np.bool_)
    strongest: NDArray[np.int8] = np.concatenate([agree, none], axis=1).argmax(axis=1).astype(np.int8)
    return strongest


def _links(checksums: NDArray[np.uint64]) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Pairs of rows that link all rows with the same checksum."""
    first = first_equal(checksums, SALT)
    later = np.flatnonzero(first != np.arange(first.size)).astype(np.uint32)
    return first[later], later
