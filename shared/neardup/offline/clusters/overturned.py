"""Corrections of the stream: documents that the stream called unique and the pass found to be duplicates.

Verdicts of the stream have the revisions 0 and 1. The pass starts at 2 and increments the revision whenever its verdict
on a document differs from its previous verdict, also when the document turns out to be unique after all. The previous
verdicts are read from the results, so a repeated run gives the same revisions with either engine.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow
import pyarrow.parquet
from numpy.typing import NDArray

from neardup.errors import CorruptState
from neardup.matching.match import RELATIONS
from neardup.offline.clusters.copies import LEVELS, Copies, levels
from neardup.offline.clusters.edges import Contained
from neardup.offline.clusters.groups import first_of_each, sizes
from neardup.offline.corpus.columns import UNIQUE, ColumnStore
from neardup.offline.corpus.document_ids import NO_ROW, RowIndex
from neardup.types import DocumentId, Relation

FIRST_REVISION: Final = 2
NEAR: Final = RELATIONS.index(Relation.NEAR)
CONTAINED: Final = RELATIONS.index(Relation.CONTAINED)
_RELATION_CODES: Final[dict[str | None, int]] = {str(relation): place for place, relation in enumerate(RELATIONS)}
_RELATION_CODES[None] = UNIQUE


class Revisions(NamedTuple):
    """Corrected verdicts: row, relation (an index into RELATIONS, or UNIQUE), matched row (or NO_ROW) and revision."""

    row: NDArray[np.int64]
    relation: NDArray[np.int8]
    target: NDArray[np.int64]
    revision: NDArray[np.int64]


class Overturned(NamedTuple):
    """Rows that the stream called unique, their relation to an earlier row, and that row."""

    row: NDArray[np.int64]
    relation: NDArray[np.int8]
    target: NDArray[np.int64]


def relations_to(documents: ColumnStore, copies: Copies, rows: NDArray[Any], firsts: NDArray[Any]) -> NDArray[np.int8]:
    """Return the relation of each document to the first document of its cluster.

    The first document is identical to itself.
    """
    found = levels(documents.checksums[rows], documents.checksums[firsts])
    found[found == LEVELS] = NEAR
    # Copies that several levels connect agree at least on the weakest level.
    found[(found == NEAR) & (copies.kept[rows] == copies.kept[firsts])] = LEVELS - 1
    return found


def find_overturned(
    documents: ColumnStore, copies: Copies, cluster: NDArray[np.uint32], contained: Contained
) -> Overturned:
    """Find documents that the stream called unique and that the pass calls duplicates.

    They are documents that are not the first of their cluster, and documents that are alone in their cluster and
    contained in an earlier document.
    """
    first = first_of_each(cluster, documents.order)
    unique = documents.relation == UNIQUE
    members = np.flatnonzero(unique & (first != np.arange(len(documents))))
    alone = unique & (sizes(cluster) == 1)
    earlier = documents.rank[contained.outer] < documents.rank[contained.inner]
    held = np.flatnonzero(alone[contained.inner] & earlier)
    inner, outer = contained.inner[held], contained.outer[held]
    # Choose the container with the highest containment, the first one on a tie.
    order = np.lexsort((documents.rank[outer], -contained.containment[held], inner))
    inner, places = np.unique(inner[order], return_index=True)
    return Overturned(
        np.concatenate([members, inner]).astype(np.int64),
        np.concatenate(
            [relations_to(documents, copies, members, first[members]), np.full(inner.size, CONTAINED, np.int8)]
        ),
        np.concatenate([first[members], outer[order][places]]).astype(np.int64),
    )


def next_revisions(documents: ColumnStore, found: Overturned, previous: Revisions | None) -> Revisions:
    """Return the revisions after this run, given those of the previous run."""
    rows = len(documents)
    relation, target = np.full(rows, UNIQUE, np.int8), np.full(rows, NO_ROW)
    revision = np.full(rows, FIRST_REVISION - 1)
    if previous is not None:
        relation[previous.row], target[previous.row] = previous.relation, previous.target
        revision[previous.row] = previous.revision
    now, now_target = np.full(rows, UNIQUE, np.int8), np.full(rows, NO_ROW)
    now[found.row], now_target[found.row] = found.relation, found.target
    revision += (now != relation) | (now_target != target)
    changed = np.flatnonzero(revision >= FIRST_REVISION)
    return Revisions(changed, now[changed], now_target[changed], revision[changed])


def read_revisions(path: Path, documents: ColumnStore) -> Revisions | None:
    """Read the revisions of documents that still exist. Return None without a file. Raises CorruptState."""
    if not path.exists():
        return None
    try:
        columns = ["document", "relation", "duplicate_of", "revision"]
        table = pyarrow.parquet.read_table(path, columns=columns, page_checksum_verification=True)
        names, relations, targets, revisions = (column.to_pylist() for column in table.columns)
        row, target = _rows_of(documents, names), _rows_of(documents, targets)
        relation = np.array([_RELATION_CODES[each] for each in relations], np.int8)
        revision = np.array(revisions, np.int64)
    except (pyarrow.ArrowException, OSError, ValueError, KeyError) as error:
        raise CorruptState(
            f"{path}: expected the revisions of the last run, got: {error!r}; restore the file, or delete it, after "
            "which revisions start again"
        ) from error
    there = row != NO_ROW
    return Revisions(row[there], relation[there], target[there], revision[there])


def _rows_of(documents: ColumnStore, names: Sequence[str | None]) -> NDArray[np.int64]:
    """Return the rows of documents named as "partition:offset", NO_ROW for None and for unknown documents."""
    places = [(0, 0) if name is None else DocumentId.parse(name) for name in names]
    rows = RowIndex(documents.id[:, 1:]).rows_of(np.array(places, np.int64).reshape(-1, 2))
    return np.where([name is not None for name in names], rows, NO_ROW)
