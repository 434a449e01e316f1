"""How two documents of an index relate, from their checksums and sketches among the gathered documents."""

from typing import Final, NamedTuple

from neardup.errors import NotClustered, WrongState
from neardup.matching.rule import Thresholds
from neardup.offline.corpus.columns import ColumnStore
from neardup.offline.queries.index_reader import HOW_TO_MAKE, Entry
from neardup.signatures.packed_sketch import compare
from neardup.types import Relation

_LEVELS: Final = (Relation.IDENTICAL, Relation.SAME_TEXT, Relation.SAME_SHINGLES)


class Likened(NamedTuple):
    """The strongest relation that is true both ways, None if there is none; the resemblance, None if not known."""

    relation: Relation | None
    resemblance: float | None


def liken(documents: ColumnStore, a: Entry, b: Entry, thresholds: Thresholds) -> Likened:
    """Compare two documents. Raises StateError if they are not among the gathered ones."""
    _check(documents, a)
    _check(documents, b)
    for level, relation in enumerate(_LEVELS):
        if (documents.checksums[a.row, level] == documents.checksums[b.row, level]).all():
            return Likened(relation, 1.0)
    left, right = documents.sketch(a.kept_row), documents.sketch(b.kept_row)
    if not left.size or not right.size:
        return Likened(None, None)
    resemblance = compare(left, right).resemblance
    return Likened(Relation.NEAR if resemblance >= thresholds.resemblance else None, resemblance)


def _check(documents: ColumnStore, entry: Entry) -> None:
    if entry.row < 0:
        raise NotClustered(f"document {entry.document}: expected its sketch, the pass kept none; {HOW_TO_MAKE} locally")
    if entry.row >= len(documents) or documents.document(entry.row) != entry.id:
        raise WrongState(f"document {entry.document}: expected in row {entry.row} of the gathered ones; {HOW_TO_MAKE}")
