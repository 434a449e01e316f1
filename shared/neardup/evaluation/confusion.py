"""Precision, recall and F1 of predictions, with bootstrap intervals.

Predictions are one row of booleans, or one row per repetition of a method. The results of repetitions are averaged.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

RESAMPLED: Final = 1000
CONFIDENCE: Final = 0.95


@dataclass(frozen=True, slots=True)
class Figure:
    """A share between 0 and 1 with its interval. All values are NaN if the denominator is zero."""

    value: float
    low: float
    high: float

    def as_dict(self) -> dict[str, float | None]:
        """Return values for JSON, with None for NaN."""
        return {name: None if np.isnan(x) else round(x, 4) for name, x in zip(self.__slots__, self._all(), strict=True)}

    def _all(self) -> tuple[float, float, float]:
        return self.value, self.low, self.high


@dataclass(frozen=True, slots=True, kw_only=True)
class Quality:
    """Quality of predictions. Counts are averages if there are repetitions."""

    pairs: int
    duplicates: int
    found: float
    false_alarms: float
    precision: Figure
    recall: Figure
    f1: Figure

    def as_dict(self) -> dict[str, object]:
        """Return values for JSON."""
        counts = {name: getattr(self, name) for name in ("pairs", "duplicates", "found", "false_alarms")}
        return counts | {name: getattr(self, name).as_dict() for name in ("precision", "recall", "f1")}


def figures(
    found: NDArray[np.float64], called: NDArray[np.float64], duplicates: NDArray[np.float64] | float
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return precision, recall and F1 from the counts of true positives, of predicted duplicates and of duplicates."""
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
    """Return the quality of predictions.

    The pairs of a group share pages, so they depend on each other and are resampled together.
    """
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
    """Draw groups with replacement; return how often each pair is in each resample."""
    names, place = np.unique(group, return_inverse=True)
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(names.size, np.full(names.size, 1 / names.size), size=times)
    drawn: NDArray[np.float64] = counts[:, place].astype(float)
    return drawn


def _figure(values: NDArray[np.float64], resampled: NDArray[np.float64]) -> Figure:
    # A resample without positives has no value and is left out of the interval.
    known = ~np.isnan(resampled)
    means = np.nansum(resampled, axis=1)[known.any(axis=1)] / known.sum(axis=1)[known.any(axis=1)]
    if not means.size or np.isnan(values).all():
        return Figure(float("nan"), float("nan"), float("nan"))
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    return Figure(float(np.nanmean(values)), float(low), float(high))
