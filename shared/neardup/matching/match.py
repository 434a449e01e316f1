"""Evidence: that a document duplicates an earlier one, and how strongly."""

from dataclasses import dataclass
from typing import Final

from neardup.matching.found_by import NO_TABLE, FoundBy
from neardup.matching.rule import Thresholds, decide
from neardup.signatures.packed_sketch import Likeness, compare
from neardup.types import Document, DocumentId, Relation

RELATIONS: Final = tuple(Relation)
"""Strongest first; the place in it is how a relation is written."""

_SAME: Final = Likeness(1.0, 1.0, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """An earlier document that a document duplicates.

    `group` is the first document of the group that the earlier document belongs to, as far as its owner knew;
    `found_by` names the tables and bands that found the pair.
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
        """Less is better: the stronger relation, then the earlier document."""
        return RELATIONS.index(self.relation), self.id


def can_better(best: Match | None, later: Document, earlier: Document) -> bool:
    """Whether `match` of these two could be better than what is known already: cheap, from checksums and order alone.

    Sketches say at most that the two are near, so most of a crowd of near-duplicates need not be compared.
    """
    if best is None:
        return True
    strongest = later.checksums.relation_to(earlier.checksums) or Relation.NEAR
    return (RELATIONS.index(strongest), earlier.id) < best.rank


def better(a: Match | None, b: Match | None) -> Match | None:
    """The one to tell the crawler about."""
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
    """How `later` duplicates `earlier`, which is itself a duplicate of `group` if that is given; None if it does not.

    Symmetric in nothing: the order of the two is that of all pages.
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
