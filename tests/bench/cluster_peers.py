"""Peers of the offline pass: grouping of near-duplicates by libraries, from given MIPs vectors.

Each peer inserts all documents into its index, queries the candidates of each document, compares the vectors, and joins
documents at or above the threshold. A peer returns the first document of each document's group and the seconds of all
these steps. The construction of the library's objects from the vectors is not measured.
"""

import time
from collections.abc import Iterable
from typing import Final

import numpy as np
from datasketch import MinHash, MinHashLSH
from numpy.typing import NDArray
from rensa import RMinHash, RMinHashLSH

BANDS: Final = 16
"""Number of bands of 8 values. It is the optimum that datasketch computes for threshold .65 and 128 values."""

Grouped = tuple[NDArray[np.int64], float]


def datasketch(vectors: NDArray[np.uint32], threshold: float) -> Grouped:
    """Group with MinHashLSH and the parameters that it chooses itself. The index is filled in an insertion session."""
    m = vectors.shape[1]
    scheme = MinHash(num_perm=m)
    made = [
        MinHash(num_perm=m, permutations=scheme.permutations, hashvalues=row, scheme=scheme.scheme) for row in vectors
    ]
    started = time.perf_counter()
    index = MinHashLSH(threshold=threshold, num_perm=m)
    with index.insertion_session() as session:
        for number, each in enumerate(made):
            session.insert(number, each, check_duplication=False)
    found = (
        (number, other)
        for number, each in enumerate(made)
        for other in index.query(each)
        if other < number and each.jaccard(made[other]) >= threshold
    )
    groups = _joined(len(made), found)
    return groups, time.perf_counter() - started


def rensa(vectors: NDArray[np.uint32], threshold: float) -> Grouped:
    """Group with RMinHashLSH, with bulk insertion and bulk queries."""
    made = _rensa_objects(vectors)
    started = time.perf_counter()
    index = RMinHashLSH(threshold=threshold, num_perm=vectors.shape[1], num_bands=BANDS)
    index.insert_many(made)
    found = (
        (number, other)
        for number, others in enumerate(index.query_all(made))
        for other in others
        if other < number and made[number].jaccard(made[other]) >= threshold
    )
    groups = _joined(len(made), found)
    return groups, time.perf_counter() - started


def _rensa_objects(vectors: NDArray[np.uint32]) -> list[RMinHash]:
    """Unpickle the library's objects, which it can otherwise build only from tokens. Pickles have 7 bits per byte."""
    m = vectors.shape[1]
    scheme = RMinHash(num_perm=m, seed=1)
    parts = vectors[:, :, None] >> np.array([0, 7, 14, 21, 28], np.uint32) & 0x7F
    parts[:, :, :4] |= 0x80
    values = parts.astype(np.uint8).reshape(len(vectors), -1)
    # An object without tokens has the greatest value everywhere, which takes 5 bytes.
    header = scheme.__reduce__()[2][: -5 * m]
    made = []
    for row in values:
        each = RMinHash(num_perm=m, seed=1)
        each.__setstate__(header + row.tobytes())
        made.append(each)
    assert made[0].digest() == vectors[0].tolist()
    return made


def _joined(count: int, pairs: Iterable[tuple[int, int]]) -> NDArray[np.int64]:
    """Return the first document of each document's group, by union-find."""
    parent = list(range(count))
    for pair in pairs:
        roots = []
        for each in pair:
            while parent[each] != each:
                parent[each] = parent[parent[each]]
                each = parent[each]
            roots.append(each)
        parent[max(roots)] = min(roots)
    for each in range(count):
        parent[each] = parent[parent[each]]
    return np.array(parent)
