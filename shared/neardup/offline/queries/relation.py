"""How two documents of an index relate, from their checksums and sketches among the gathered documents."""

from typing import NamedTuple

from neardup.errors import NotClustered, WrongState
from neardup.matching.rule import Thresholds
from neardup.offline.clusters.copies import COPY_RELATIONS
from neardup.offline.corpus.columns import ColumnStore
from neardup.offline.queries.index_reader import HOW_TO_MAKE, Entry
from neardup.signatures.packed_sketch import compare
from neardup.types import Relation


class EntryRelation(NamedTuple):
    """The strongest relation that is true both ways, None if there is none; the resemblance, None if not known."""

    relation: Relation | None
    resemblance: float | None


def relation_between(documents: ColumnStore, a: Entry, b: Entry, thresholds: Thresholds) -> EntryRelation:
    """Compare two documents. Raises StateError if they are not among the gathered ones."""
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
        raise NotClustered(f"document {entry.document}: expected its sketch, the pass kept none; {HOW_TO_MAKE} locally")
    if entry.row >= len(documents) or documents.document(entry.row) != entry.id:
        raise WrongState(f"document {entry.document}: expected in row {entry.row} of the gathered ones; {HOW_TO_MAKE}")
