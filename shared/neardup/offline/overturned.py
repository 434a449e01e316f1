"""What the offline pass says against the stream: documents that the stream called unique, and that are duplicates.

The stream's own verdicts have the revisions 0 and 1. The pass begins with 2, and adds one whenever it says something
else of a document than it said the last time; that it is unique after all is something else, too. What was said is
kept, so that a repeated run says the same, with the same revision.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from neardup.evidence import RELATIONS
from neardup.offline.copies import LEVELS, Copies, levels
from neardup.offline.edges import Contained
from neardup.offline.gathered import UNIQUE, Gathered
from neardup.offline.grouping import first_of_each, sizes
from neardup.types import Relation

FIRST_REVISION: Final = 2
NEAR: Final = RELATIONS.index(Relation.NEAR)
CONTAINED: Final = RELATIONS.index(Relation.CONTAINED)
NOWHERE: Final = -1
"""In place of a row."""
_NO_DOCUMENT: Final = -1
"""In place of each number of an id."""


class Said(NamedTuple):
    """Rows; how each duplicates (a place in RELATIONS, or UNIQUE) which other row (or NOWHERE), and the revision."""

    row: NDArray[np.int64]
    relation: NDArray[np.int8]
    target: NDArray[np.int64]
    revision: NDArray[np.int64]


class Overturned(NamedTuple):
    """Rows that the stream called unique, how each duplicates an earlier one, and which."""

    row: NDArray[np.int64]
    relation: NDArray[np.int8]
    target: NDArray[np.int64]


def relations_to(documents: Gathered, copies: Copies, rows: NDArray[Any], firsts: NDArray[Any]) -> NDArray[np.int8]:
    """How documents of a cluster relate to its first one, as places in RELATIONS; to itself it is identical."""
    found = levels(documents.checksums[rows], documents.checksums[firsts])
    found[found == LEVELS] = NEAR
    # Brought together by several levels, one after the other: the weakest is true of all.
    found[(found == NEAR) & (copies.kept[rows] == copies.kept[firsts])] = LEVELS - 1
    return found


def find_overturned(
    documents: Gathered, copies: Copies, cluster: NDArray[np.uint32], contained: Contained
) -> Overturned:
    """Duplicates of the first document of their cluster; and of those alone, what an earlier document contains."""
    first = first_of_each(cluster, documents.rank)
    unique = documents.relation == UNIQUE
    members = np.flatnonzero(unique & (first != np.arange(len(documents))))
    alone = unique & (sizes(cluster) == 1)
    earlier = documents.rank[contained.outer] < documents.rank[contained.inner]
    held = np.flatnonzero(alone[contained.inner] & earlier)
    inner, outer = contained.inner[held], contained.outer[held]
    # Of several documents that hold it, the one that holds most; among equals the first.
    order = np.lexsort((documents.rank[outer], -contained.containment[held], inner))
    inner, places = np.unique(inner[order], return_index=True)
    return Overturned(
        np.concatenate([members, inner]).astype(np.int64),
        np.concatenate(
            [relations_to(documents, copies, members, first[members]), np.full(inner.size, CONTAINED, np.int8)]
        ),
        np.concatenate([first[members], outer[order][places]]).astype(np.int64),
    )


def revised(documents: Gathered, found: Overturned, before: Said | None) -> Said:
    """What is said now, after what was said in the run before."""
    rows = len(documents)
    relation, target = np.full(rows, UNIQUE, np.int8), np.full(rows, NOWHERE)
    revision = np.full(rows, FIRST_REVISION - 1)
    if before is not None:
        relation[before.row], target[before.row] = before.relation, before.target
        revision[before.row] = before.revision
    now, now_target = np.full(rows, UNIQUE, np.int8), np.full(rows, NOWHERE)
    now[found.row], now_target[found.row] = found.relation, found.target
    revision += (now != relation) | (now_target != target)
    said = np.flatnonzero(revision >= FIRST_REVISION)
    return Said(said, now[said], now_target[said], revision[said])


def said_of(documents: Gathered, kept: Mapping[str, NDArray[Any]]) -> Said:
    """What `to_keep` made, of the documents that are still there."""
    row, target = (rows_of(documents, kept[name].reshape(-1, 3)) for name in ("document", "target"))
    there = row != NOWHERE
    return Said(row[there], kept["relation"][there], target[there], kept["revision"][there])


def to_keep(documents: Gathered, said: Said) -> dict[str, NDArray[Any]]:
    """With documents named by their ids, as row numbers do not outlive a run that starts anew."""
    target = np.where((said.target == NOWHERE)[:, None], _NO_DOCUMENT, documents.id[said.target])
    return {
        "document": documents.id[said.row].reshape(-1),
        "relation": said.relation,
        "target": target.reshape(-1),
        "revision": said.revision,
    }


def rows_of(documents: Gathered, ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """The row of each id, NOWHERE for documents that are not there."""
    if not len(documents):
        return np.full(len(ids), NOWHERE)
    ordered, wanted = _sortable(documents.id[documents.order]), _sortable(ids)
    places = np.minimum(np.searchsorted(ordered, wanted), len(documents) - 1)
    return np.where(ordered[places] == wanted, documents.order[places], NOWHERE)


def _sortable(ids: NDArray[np.int64]) -> NDArray[Any]:
    """Ids as bytes that sort as they do: unsigned, the most significant byte first."""
    unsigned = np.ascontiguousarray(ids).view(np.uint64) ^ np.uint64(1 << 63)
    return unsigned.astype(">u8").view("S24").reshape(-1)
