"""What a benchmark says."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Result:
    """A figure, what it is measured against in the same run, and what it should reach.

    `goal` None means: told for comparison, nothing is promised.
    """

    name: str
    value: float
    unit: str
    against: str
    goal: float | None = None
    smaller_is_better: bool = False

    @property
    def holds(self) -> bool | None:
        if self.goal is None:
            return None
        return self.value <= self.goal if self.smaller_is_better else self.value >= self.goal

    def as_dict(self) -> dict[str, Any]:
        """The object that `--json` prints."""
        fields = asdict(self)
        del fields["smaller_is_better"]
        return {**fields, "holds": self.holds}
