"""Matches: evidence that a document duplicates an earlier one, and their ranking."""

from dataclasses import dataclass
from typing import Final

from neardup.matching.found_by import NO_TABLE, FoundBy
from neardup.matching.rule import Thresholds, decide
from neardup.signatures.packed_sketch import Likeness, compare
from neardup.types import Document, DocumentId, Relation

RELATIONS: Final = tuple(Relation)
"""All relations, strongest first. Messages and state contain the position of a relation in this tuple."""

_SAME: Final = Likeness(1.0, 1.0, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """An earlier document that a document duplicates.

    `group` is the first document of the group that the earlier document belongs to, as recorded by its owner.
    `found_by` contains the tables and bands that found the pair.
    """

    id: DocumentId
    url: str
    relation: Relation
    hamming: int
    resemblance: float
    containment: float | None
    found_by: FoundBy
    group: DocumentId
    group_url: str

    @property
    def rank(self) -> tuple[int, DocumentId]:
        """Sort key, best match first: by relation, then by the earlier document."""
        return RELATIONS.index(self.relation), self.id


def can_better(best: Match | None, later: Document, earlier: Document) -> bool:
    """Return True if the match of these two documents could be better than `best`.

    The result depends only on checksums and on the order of the documents. Without equal checksums the relation is at
    best `near`, so in a large group of near-duplicates most sketches need not be compared.
    """
    if best is None:
        return True
    strongest = later.checksums.relation_to(earlier.checksums) or Relation.NEAR
    return (RELATIONS.index(strongest), earlier.id) < best.rank


def better(a: Match | None, b: Match | None) -> Match | None:
    """Return the better of two matches, either of which may be None."""
    if a is None or b is None:
        return a or b
    return a if a.rank <= b.rank else b


def match(
    later: Document,
    earlier: Document,
    thresholds: Thresholds,
    *,
    found_by: FoundBy = NO_TABLE,
    group: Match | None = None,
) -> Match | None:
    """Return the match if `later` duplicates `earlier`, else None.

    `group` is the match of `earlier` itself, if `earlier` is a duplicate. The ids of the two documents must be in the
    order of the pages.
    """
    assert later.id > earlier.id
    same = later.checksums.relation_to(earlier.checksums)
    likeness = _SAME if same is not None else compare(later.sketch, earlier.sketch)
    resemblance, containment = likeness.resemblance, likeness.a_in_b
    relation = decide(same, resemblance, containment, thresholds)
    if relation is None:
        return None
    return Match(
        id=earlier.id,
        url=earlier.url,
        relation=relation,
        hamming=(later.fingerprint ^ earlier.fingerprint).bit_count(),
        resemblance=round(resemblance, 4),
        containment=None if containment is None else round(containment, 4),
        found_by=found_by,
        group=earlier.id if group is None else group.group,
        group_url=earlier.url if group is None else group.group_url,
    )
