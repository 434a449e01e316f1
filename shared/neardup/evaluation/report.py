"""An evaluation: the verdict with the present settings, the rule without tables, and every single method.

The settings are fixed, so they are tested on all pairs. The threshold of a single method is chosen on pairs, so the
method is tested out of fold: see `crossvalidation`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from neardup.deployment.plan import plan_of
from neardup.evaluation.confusion import Quality, figures, quality
from neardup.evaluation.crossvalidation import can_fold, out_of_fold
from neardup.evaluation.measures import Measures, measure
from neardup.evaluation.methods import Method, Search, accepted_by_rule, found_by_search, methods
from neardup.evaluation.pairs import Pair
from neardup.evaluation.strata import strata
from neardup.matching.rule import Thresholds
from neardup.settings import Settings
from neardup.signatures.signature import SignatureOptions, Signatures


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of the settings: lookups per page, and bytes per page in tables and sketch."""

    tables: int
    bands: int
    sketch_bytes: float

    @property
    def probes(self) -> int:
        """Number of tables that are searched per page."""
        return self.tables + self.bands

    @property
    def bytes_per_page(self) -> float:
        """Bytes per page: a fingerprint per table, a key and a fingerprint per band, and the sketch."""
        return 8 * self.tables + 16 * self.bands + self.sketch_bytes

    @classmethod
    def of(cls, settings: Settings, sketch_bytes: float) -> "Cost":
        """Return the cost of a deployment."""
        plan = plan_of(settings)
        return cls(len(plan.tables), plan.bands, sketch_bytes)


@dataclass(frozen=True, slots=True)
class StratifiedQuality:
    """Quality over all pairs and over each stratum."""

    name: str
    total: Quality
    strata: dict[str, Quality]

    def as_dict(self) -> dict[str, object]:
        """Return values for JSON."""
        parts = {name: each.as_dict() for name, each in self.strata.items()}
        return {"name": self.name, **self.total.as_dict(), "strata": parts}


@dataclass(frozen=True, slots=True)
class Point:
    """A method at one threshold on all pairs. The curve is for inspection, not for choosing a threshold."""

    threshold: float
    precision: float
    recall: float
    f1: float


@dataclass(frozen=True, slots=True)
class MethodQuality:
    """The quality of a single method.

    `chosen` has the minimum, median and maximum of the thresholds chosen by folds, and `judged` is the out-of-fold
    quality. Both are None if there are too few pairs for cross-validation.
    """

    name: str
    threshold: str
    curve: list[Point]
    chosen: tuple[float, float, float] | None
    judged: StratifiedQuality | None

    def as_dict(self) -> dict[str, object]:
        """Return values for JSON."""
        curve = [{name: _plain(getattr(each, name)) for name in each.__slots__} for each in self.curve]
        judged = {"name": self.name} if self.judged is None else self.judged.as_dict()
        return {"threshold": self.threshold, "chosen": self.chosen, **judged, "curve": curve}


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """All results. `not_found` counts near-duplicates that no table finds, `refused` those that the rule rejects."""

    pairs: int
    duplicates: int
    groups: int
    signature_version: str
    cost: Cost
    verdict: StratifiedQuality
    rule: StratifiedQuality
    candidates: StratifiedQuality
    not_found: int
    refused: int
    alone: list[MethodQuality]
    search: Search
    measures: Measures

    def as_dict(self) -> dict[str, object]:
        """Return values for JSON."""
        counts = {name: getattr(self, name) for name in ("pairs", "duplicates", "groups", "not_found", "refused")}
        cost = {"probes": self.cost.probes, "bytes_per_page": round(self.cost.bytes_per_page, 1)}
        given = {name: getattr(self, name).as_dict() for name in ("verdict", "rule", "candidates")}
        methods_alone = [each.as_dict() for each in self.alone]
        return {**counts, "signature_version": self.signature_version, "cost": cost, **given, "alone": methods_alone}


def evaluate(pairs: Sequence[Pair], settings: Settings, *, seed: int = 0) -> Evaluation:
    """Evaluate the settings and the single methods. Equal pairs, settings and seed give equal results.

    Raises SettingsError or OverLimit.
    """
    signatures = Signatures(SignatureOptions.of(settings))
    measures = measure(pairs, signatures)
    parts = strata(measures)

    def judged(name: str, predicted: NDArray[np.bool_]) -> StratifiedQuality:
        return _judged(name, measures, predicted, parts, seed)

    search = Search.of(settings)
    is_found = found_by_search(measures, search)
    accepted = accepted_by_rule(measures, Thresholds.of(settings))

    def method_quality(method: Method) -> MethodQuality:
        curve = curve_of(measures, method)
        if not can_fold(measures.label, measures.group):
            return MethodQuality(method.name, method.threshold, curve, None, None)
        honest, picks = out_of_fold(measures.label, method.predicted, measures.group, seed=seed)
        least, middle, most = np.quantile(method.thresholds[picks], [0, 0.5, 1], method="nearest").tolist()
        return MethodQuality(method.name, method.threshold, curve, (least, middle, most), judged(method.name, honest))

    return Evaluation(
        pairs=len(measures),
        duplicates=int(measures.label.sum()),
        groups=np.unique(measures.group).size,
        signature_version=signatures.version,
        cost=Cost.of(settings, measures.sketch_bytes),
        verdict=judged("verdict", is_found & accepted),
        rule=judged("rule alone", accepted),
        candidates=judged("found by tables", is_found),
        not_found=int((measures.label & ~is_found).sum()),
        refused=int((measures.label & is_found & ~accepted).sum()),
        alone=[method_quality(method) for method in methods(measures, settings)],
        search=search,
        measures=measures,
    )


def settings_quality(pairs: Sequence[Pair], settings: Settings, *, seed: int = 0) -> tuple[Quality, float]:
    """Return the quality of the verdict and the mean size of a sketch in bytes. Raises SettingsError or OverLimit."""
    measures = measure(pairs, Signatures(SignatureOptions.of(settings)))
    predicted = found_by_search(measures, Search.of(settings)) & accepted_by_rule(measures, Thresholds.of(settings))
    return quality(measures.label, predicted, measures.group, seed=seed), measures.sketch_bytes


def curve_of(measures: Measures, method: Method) -> list[Point]:
    """Return precision, recall and F1 at every threshold."""
    hits = (method.predicted & measures.label).sum(axis=1).astype(float)
    rows = figures(hits, method.predicted.sum(axis=1).astype(float), float(measures.label.sum()))
    columns = (each.tolist() for each in (method.thresholds, *rows))
    return [Point(*row) for row in zip(*columns, strict=True)]


def _judged(
    name: str, measures: Measures, predicted: NDArray[np.bool_], parts: dict[str, NDArray[np.bool_]], seed: int
) -> StratifiedQuality:
    rows = np.atleast_2d(predicted)
    return StratifiedQuality(
        name,
        quality(measures.label, rows, measures.group, seed=seed),
        {
            part: quality(measures.label[within], rows[:, within], measures.group[within], seed=seed)
            for part, within in parts.items()
        },
    )


def _plain(value: float) -> float | None:
    return None if np.isnan(value) else round(value, 4)
