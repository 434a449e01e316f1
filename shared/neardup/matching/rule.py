"""The decision rule: from what is known of two pages to whether the later one is a duplicate, and how.

| the later page | relation |
|---|---|
| has the same bytes | identical |
| has the same canonical tokens | same-text |
| has the same selected shingles | same-shingles |
| resembles the earlier one at least as much as the threshold says | near |
| is in the earlier one at least as much as the threshold says | contained |
| otherwise | none: not a duplicate of that page |

The first line that holds decides. Whether two pages are compared at all is not decided here: they are when a table
finds one near the other, or when they have the same fingerprint.
"""

from dataclasses import dataclass

from neardup.settings import Settings
from neardup.types import Relation


@dataclass(frozen=True, slots=True)
class Thresholds:
    """From where on two pages count as near-duplicates, or the later one as contained in the earlier."""

    resemblance: float = 0.65
    containment: float = 0.95

    @classmethod
    def of(cls, settings: Settings) -> "Thresholds":
        """Those of a deployment."""
        return cls(settings.near_resemblance, settings.contained)


def decide(
    same: Relation | None, resemblance: float, containment: float | None, thresholds: Thresholds
) -> Relation | None:
    """How the later page duplicates the earlier one, or None. `same`: the level on which their checksums agree.

    `containment` is how much of the later page is in the earlier, None if too little is known to say.
    """
    if same is not None:
        return same
    if resemblance >= thresholds.resemblance:
        return Relation.NEAR
    if containment is not None and containment >= thresholds.containment:
        return Relation.CONTAINED
    return None
