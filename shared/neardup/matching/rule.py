"""The decision rule: the relation of a page to an earlier page, from their checksums and estimates.

| the later page | relation |
|---|---|
| has the same bytes | identical |
| has the same canonical tokens | same-text |
| has the same selected shingles | same-shingles |
| has at least the threshold resemblance to the earlier page | near |
| has at least the threshold containment in the earlier page | contained |
| otherwise | none: not a duplicate of that page |

The first row that applies decides. The rule does not select the pages to compare: a page is compared with the
candidates that a table finds, and with pages of equal fingerprint.
"""

from dataclasses import dataclass

from neardup.settings import Settings
from neardup.types import Relation


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Minimum resemblance of near-duplicates, and minimum containment of a page in an earlier page."""

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
