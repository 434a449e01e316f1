"""Relation of two documents in an index, from their checksums and sketches in the column store."""

from typing import NamedTuple

from neardup.errors import NotClustered, WrongState
from neardup.matching.rule import Thresholds
from neardup.offline.clusters.copies import COPY_RELATIONS
from neardup.offline.corpus.columns import ColumnStore
from neardup.offline.queries.index_reader import HOW_TO_MAKE, Entry
from neardup.signatures.packed_sketch import compare
from neardup.types import Relation


class EntryRelation(NamedTuple):
    """The strongest symmetric relation, None if there is none, and the resemblance, None if it is unknown."""

    relation: Relation | None
    resemblance: float | None


def relation_between(documents: ColumnStore, a: Entry, b: Entry, thresholds: Thresholds) -> EntryRelation:
    """Compare two documents. Raises StateError if they are not in the column store."""
    _check(documents, a)
    _check(documents, b)
    for level, relation in enumerate(COPY_RELATIONS):
        if (documents.checksums[a.row, level] == documents.checksums[b.row, level]).all():
            return EntryRelation(relation, 1.0)
    left, right = documents.sketch(a.kept_row), documents.sketch(b.kept_row)
    if not left.size or not right.size:
        return EntryRelation(None, None)
    resemblance = compare(left, right).resemblance
    return EntryRelation(Relation.NEAR if resemblance >= thresholds.resemblance else None, resemblance)


def _check(documents: ColumnStore, entry: Entry) -> None:
    if entry.row < 0:
        raise NotClustered(
            f"document {entry.document}: expected its sketch, but the pass kept none; {HOW_TO_MAKE} with the local "
            "engine"
        )
    if entry.row >= len(documents) or documents.document(entry.row) != entry.id:
        raise WrongState(
            f"document {entry.document}: expected it in row {entry.row} of the column store, got another document; "
            f"{HOW_TO_MAKE}"
        )
