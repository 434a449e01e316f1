"""What a benchmark found, and whether that is good enough."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Result:
    """A figure. `against` says what it was measured against, in the same run; `goal` is None if there is none."""

    name: str
    value: float
    unit: str
    against: str
    goal: float | None = None
    holds: bool | None = None

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def at_least(name: str, value: float, goal: float, *, unit: str, against: str) -> Result:
    """A figure that should reach its goal."""
    return Result(name, round(value, 3), unit, against, goal, value >= goal)
