"""The decision rule: the relation of a page to an earlier page, from their checksums and estimates.

| the later page | relation |
|---|---|
| has the same bytes | identical |
| has the same canonical tokens | same-text |
| has the same selected shingles | same-shingles |
| resembles the earlier page at least as much as the threshold | near |
| is contained in the earlier page at least as much as the threshold | contained |
| otherwise | none: not a duplicate of that page |

The first line that applies decides. The rule does not choose which pages are compared: those are the candidates that a
table finds, and pages with equal fingerprints.
"""

from dataclasses import dataclass

from neardup.settings import Settings
from neardup.types import Relation


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Least resemblance of near-duplicates, and least containment of a page in an earlier one."""

    resemblance: float = 0.65
    containment: float = 0.95

    @classmethod
    def of(cls, settings: Settings) -> "Thresholds":
        """Return the thresholds of a deployment."""
        return cls(settings.near_resemblance, settings.contained)


def decide(
    same: Relation | None, resemblance: float, containment: float | None, thresholds: Thresholds
) -> Relation | None:
    """Return the relation by which the later page duplicates the earlier page, or None.

    `same` is the strongest level on which their checksums agree. `containment` is the estimated share of the later page
    that is in the earlier page; None if the sample is too small.
    """
    if same is not None:
        return same
    if resemblance >= thresholds.resemblance:
        return Relation.NEAR
    if containment is not None and containment >= thresholds.containment:
        return Relation.CONTAINED
    return None
