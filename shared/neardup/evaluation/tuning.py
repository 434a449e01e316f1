"""A search for better settings: features and their weights, w, k, bands and thresholds.

Every variant of the settings predicts all pairs. Cross-validation estimates the quality of the search: a variant is
chosen on all folds but one and tested on the remaining fold. The returned settings are chosen on all pairs, so there is
no unbiased estimate of their quality.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from neardup.deployment.plan import plan_of
from neardup.errors import InvalidPair
from neardup.evaluation.confusion import Quality, quality
from neardup.evaluation.crossvalidation import choose_best, folds, out_of_fold
from neardup.evaluation.measures import FAR, Measures, measure
from neardup.evaluation.methods import Search, accepted_by_rule, found_by_search
from neardup.evaluation.pairs import Pair, groups_of
from neardup.evaluation.report import settings_quality
from neardup.matching.rule import Thresholds
from neardup.settings import Settings
from neardup.signatures.bands import BandFilter
from neardup.signatures.fingerprint import hamming
from neardup.signatures.signature import SignatureOptions, Signatures


class Variant(NamedTuple):
    """The tuned settings by name."""

    phrases: tuple[int, ...]
    weighting: str
    shingle_words: int
    hamming: int
    bands: str
    near_resemblance: float
    contained: float

    @classmethod
    def of(cls, settings: Settings) -> "Variant":
        """Return the variant of the present settings."""
        return cls(*(getattr(settings, name) for name in cls._fields))

    def difference_from(self, known: "Variant") -> int:
        """Return the number of settings that differ.

        Among equally good and equally cheap variants, the search chooses the one with fewest differences.
        """
        return sum(mine != theirs for mine, theirs in zip(self, known, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """The values to try. k stays small: with ten tables, each additional bit makes the scanned ranges much longer."""

    phrases: Sequence[tuple[int, ...]] = ((1,), (2,), (1, 2))
    weighting: Sequence[str] = ("presence", "tf", "log-tf")
    shingle_words: Sequence[int] = (2, 3, 4)
    hamming: Sequence[int] = (0, 2, 3, 4)
    bands: Sequence[str] = ("none", "12x10", "16x8", "18x7", "21x6", "25x5", "32x4")
    near_resemblance: Sequence[float] = (0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85)
    contained: Sequence[float] = (0.85, 0.9, 0.95, 1.0)

    @property
    def measurements(self) -> int:
        """Number of measurements of all pairs, the slow part of the search and the unit of its progress."""
        return len(self.shingle_words) + len(self.phrases) * len(self.weighting)

    def variants(self) -> list[Variant]:
        """Return all variants."""
        return [Variant(*row) for row in product(*(getattr(self, name) for name in Variant._fields))]


@dataclass(frozen=True, slots=True)
class Limits:
    """Constraints on the settings: minimum precision on the pairs that choose them, and maximum probes per page."""

    least_precision: float = 0.9
    most_probes: int = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningResult:
    """The chosen settings, the cross-validated quality of the search, and the quality of the present settings.

    `by_file` is the cross-validated quality per file of pairs. `agreement` is the share of folds that chose the same
    value as the result, per setting. A low share suggests that the value was chosen by chance.
    """

    chosen: Variant
    probes: int
    tried: int
    cross_validated: Quality
    by_file: dict[str, Quality]
    before: Quality
    agreement: dict[str, float]


def tune(
    pairs: Sequence[Pair],
    settings: Settings,
    limits: Limits | None = None,
    space: Space | None = None,
    *,
    seed: int = 0,
    measured: Callable[[], None] = lambda: None,
) -> TuningResult:
    """Search the space for the best F1 within the limits. Among equals, the cheapest variant wins.

    `measured` is called after every measurement of all pairs. Raises InvalidPair if there are too few pairs for
    cross-validation or if every variant has too many probes. Raises SettingsError or OverLimit like `Signatures`.
    """
    limits, space = limits or Limits(), space or Space()
    label, group, known = np.array([pair.label for pair in pairs]), np.array(groups_of(pairs)), Variant.of(settings)
    source = np.array([pair.source for pair in pairs])
    next(folds(label, group, seed=seed))  # Raise InvalidPair before the slow part.
    probes = {both: _probes(settings, *both) for both in product(space.hamming, space.bands)}
    variants = [each for each in space.variants() if probes[each.hamming, each.bands] <= limits.most_probes]
    if not variants:
        raise InvalidPair(
            f"expected settings with at most {limits.most_probes} probes per page, got none; allow more probes"
        )
    variants.sort(key=lambda each: (probes[each.hamming, each.bands], each.difference_from(known)))
    predictions = _Predictions(pairs, settings, space, measured)
    predicted = np.array([predictions.of(each) for each in variants])
    cross_validated, picks = out_of_fold(label, predicted, group, least_precision=limits.least_precision, seed=seed)
    best = variants[choose_best(label, predicted, limits.least_precision)]
    by_fold = [variants[pick] for pick in picks.ravel()]
    return TuningResult(
        chosen=best,
        probes=probes[best.hamming, best.bands],
        tried=len(variants),
        cross_validated=quality(label, cross_validated, group, seed=seed),
        by_file={
            name: quality(label[own], cross_validated[:, own], group[own], seed=seed)
            for name, own in {name: source == name for name in np.unique(source).tolist()}.items()
        },
        before=quality(label, predictions.of(known), group, seed=seed),
        agreement={
            name: sum(each[place] == best[place] for each in by_fold) / len(by_fold)
            for place, name in enumerate(Variant._fields)
        },
    )


def require_unseen(pairs: Sequence[Pair], tests: Sequence[Pair]) -> None:
    """Raise InvalidPair if a page of `tests` is one of `pairs`."""
    seen = {page.content for pair in pairs for page in (pair.a, pair.b)}
    for pair in tests:
        if pair.a.content in seen or pair.b.content in seen:
            raise InvalidPair(
                f"{pair.source}, pair {pair.id}: expected pages on which the settings were not tuned, got a page on "
                "which they were; remove the pair from the test pairs"
            )


def held_out(pairs: Sequence[Pair], tests: Sequence[Pair], settings: Settings, *, seed: int = 0) -> Quality:
    """Return the quality on `tests` of settings that were tuned on `pairs`. Raises InvalidPair if they share a page."""
    require_unseen(pairs, tests)
    return settings_quality(tests, settings, seed=seed)[0]


class _Predictions:
    """Predictions of any variant on all pairs, from a few measurements."""

    def __init__(self, pairs: Sequence[Pair], settings: Settings, space: Space, measured: Callable[[], None]) -> None:
        self._by_words: dict[int, Measures] = {}
        self._distances: dict[tuple[tuple[int, ...], str], NDArray[np.int64]] = {}
        self._cache: dict[Hashable, NDArray[np.bool_]] = {}
        for words in dict.fromkeys((*space.shingle_words, settings.shingle_words)):
            choices = SignatureOptions.of(replace(settings, shingle_words=words))
            self._by_words[words] = measure(pairs, Signatures(choices))
            measured()
        for phrases, weighting in dict.fromkeys(
            (*product(space.phrases, space.weighting), (settings.phrases, settings.weighting))
        ):
            choices = SignatureOptions.of(replace(settings, phrases=phrases, weighting=weighting))
            self._distances[phrases, weighting] = _distances(pairs, Signatures(choices, everything=False))
            measured()

    def of(self, variant: Variant) -> NDArray[np.bool_]:
        """Combine `found_by_search` and `accepted_by_rule`.

        Both parts are cached, because thousands of variants share them.
        """
        measures = self._by_words[variant.shingle_words]
        is_found = self._cached(
            variant[: Variant._fields.index("near_resemblance")], lambda: self._found(measures, variant)
        )
        thresholds = Thresholds(variant.near_resemblance, variant.contained)
        return is_found & self._cached(
            (variant.shingle_words, thresholds), lambda: accepted_by_rule(measures, thresholds)
        )

    def _found(self, measures: Measures, variant: Variant) -> NDArray[np.bool_]:
        distances = self._distances[variant.phrases, variant.weighting]
        k, _, s = variant.bands.partition("x")
        bands = BandFilter(int(k), int(s)) if s else None
        # A page without a fingerprint under these features is not searched.
        return found_by_search(replace(measures, hamming=distances), Search(variant.hamming, bands)) & (distances < FAR)

    def _cached(self, key: Hashable, make: Callable[[], NDArray[np.bool_]]) -> NDArray[np.bool_]:
        if key not in self._cache:
            self._cache[key] = make()
        return self._cache[key]


def _probes(settings: Settings, k: int, bands: str) -> int:
    plan = plan_of(replace(settings, hamming=k, bands=bands))
    return len(plan.tables) + plan.bands


def _distances(pairs: Sequence[Pair], signatures: Signatures) -> NDArray[np.int64]:
    distances = np.full(len(pairs), FAR)
    for row, pair in enumerate(pairs):
        a, b = signatures.of(pair.a).fingerprint, signatures.of(pair.b).fingerprint
        if a is not None and b is not None:
            distances[row] = hamming(a.value, b.value)
    return distances
