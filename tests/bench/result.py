"""Results of benchmarks."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Result:
    """A figure with its reference, which the same run measured, and its goal.

    A figure whose `goal` is None is reported for comparison only.
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
        """Return the object that `--json` prints."""
        fields = asdict(self)
        del fields["smaller_is_better"]
        return {**fields, "holds": self.holds}
