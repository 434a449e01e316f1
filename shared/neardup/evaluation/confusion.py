"""Right and wrong, counted: precision, recall and F1 of predictions, with intervals by bootstrap.

Predictions are a row of booleans, or several rows: repetitions of one method, whose figures are averaged.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

RESAMPLED: Final = 1000
CONFIDENCE: Final = 0.95


@dataclass(frozen=True, slots=True)
class Figure:
    """A share between 0 and 1 and its interval. NaN where there is nothing to take a share of."""

    value: float
    low: float
    high: float

    def as_dict(self) -> dict[str, float | None]:
        """For JSON, which has no NaN."""
        return {name: None if np.isnan(x) else round(x, 4) for name, x in zip(self.__slots__, self._all(), strict=True)}

    def _all(self) -> tuple[float, float, float]:
        return self.value, self.low, self.high


@dataclass(frozen=True, slots=True, kw_only=True)
class Quality:
    """How good predictions are. Counts are averages where there are repetitions."""

    pairs: int
    duplicates: int
    found: float
    false_alarms: float
    precision: Figure
    recall: Figure
    f1: Figure

    def as_dict(self) -> dict[str, object]:
        """Plain values, for JSON."""
        counts = {name: getattr(self, name) for name in ("pairs", "duplicates", "found", "false_alarms")}
        return counts | {name: getattr(self, name).as_dict() for name in ("precision", "recall", "f1")}


def figures(
    found: NDArray[np.float64], called: NDArray[np.float64], duplicates: NDArray[np.float64] | float
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Precision, recall and F1 from counts: true positives, all that were called duplicates, all that are."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return found / called, found / duplicates, 2 * found / (called + duplicates)


def quality(
    label: NDArray[np.bool_],
    predicted: NDArray[np.bool_],
    group: NDArray[np.int64],
    *,
    seed: int = 0,
    resampled: int = RESAMPLED,
) -> Quality:
    """The figures of predictions. Groups of pairs that share pages are drawn together: they are not independent."""
    rows = np.atleast_2d(predicted)
    assert rows.shape[1] == label.size == group.size
    hits = (rows & label).sum(axis=1).astype(float)
    called = rows.sum(axis=1).astype(float)
    values = figures(hits, called, float(label.sum()))
    drawn = _drawn(group, resampled, seed)
    bounds = figures(
        drawn @ (rows & label).T.astype(float), drawn @ rows.T.astype(float), (drawn @ label.astype(float))[:, None]
    )
    precision, recall, f1 = (_figure(value, bound) for value, bound in zip(values, bounds, strict=True))
    return Quality(
        pairs=label.size,
        duplicates=int(label.sum()),
        found=float(hits.mean()),
        false_alarms=float((called - hits).mean()),
        precision=precision,
        recall=recall,
        f1=f1,
    )


def _drawn(group: NDArray[np.int64], times: int, seed: int) -> NDArray[np.float64]:
    """How often each pair is in each resample: groups drawn with replacement."""
    names, place = np.unique(group, return_inverse=True)
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(names.size, np.full(names.size, 1 / names.size), size=times)
    drawn: NDArray[np.float64] = counts[:, place].astype(float)
    return drawn


def _figure(values: NDArray[np.float64], resampled: NDArray[np.float64]) -> Figure:
    # A resample without any positive has no figure; it says nothing of how far the figure may be off.
    known = ~np.isnan(resampled)
    means = np.nansum(resampled, axis=1)[known.any(axis=1)] / known.sum(axis=1)[known.any(axis=1)]
    if not means.size or np.isnan(values).all():
        return Figure(float("nan"), float("nan"), float("nan"))
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    return Figure(float(np.nanmean(values)), float(low), float(high))
