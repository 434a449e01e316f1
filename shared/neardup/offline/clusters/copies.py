"""Copies: documents that agree on one of Broder's three levels of identity. One copy is kept and compared with others.

A level usually implies the next, but not always: equal bytes that were served with different charsets have different
tokens. Documents that agree on any level are in the same group.
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
"""Relation of two documents for each level on which they agree: identical, same-text, same-shingles."""


class Copies(NamedTuple):
    """Per row, the kept row of its group of copies: the first in the order of all pages that has a sketch.

    `comparable` marks rows that are kept and have a sketch. If no copy has a sketch, because the document that has it
    is not in the corpus yet, the first row is kept without one.
    """

    kept: NDArray[np.uint32]
    comparable: NDArray[np.bool_]


def find_copies(documents: ColumnStore) -> Copies:
    """Group all rows of the column store into copies."""
    with ThreadPoolExecutor(CORES) as pool:
        links = list(pool.map(lambda level: _links(documents.checksums[:, level]), range(LEVELS)))
    a, b = (np.concatenate(side) for side in zip(*links, strict=True))
    group = components(len(documents), a, b)
    sketched = np.diff(documents.starts) > 0
    order = documents.order
    kept = first_of_each(group, np.concatenate([order[sketched[order]], order[~sketched[order]]]))
    return Copies(kept, sketched & (kept == np.arange(len(documents))))


def levels(checksums: NDArray[np.uint64], others: NDArray[np.uint64]) -> NDArray[np.int8]:
    """Return for each pair of documents the strongest level on which they agree, or LEVELS if there is none.

    Both arguments have the shape (pairs, levels, words of a checksum).
    """
    agree = (checksums == others).all(axis=2)
    none = np.ones((len(agree), 1), np.bool_)
    strongest: NDArray[np.int8] = np.concatenate([agree, none], axis=1).argmax(axis=1).astype(np.int8)
    return strongest


def _links(checksums: NDArray[np.uint64]) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Return pairs of rows that connect all rows with equal checksums."""
    first = first_equal(checksums, SALT)
    later = np.flatnonzero(first != np.arange(first.size)).astype(np.uint32)
    return first[later], later
