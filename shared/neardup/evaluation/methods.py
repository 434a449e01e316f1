"""Predictions of the verdict and of each single method, with one row per threshold."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from neardup.evaluation.measures import UNKNOWN, Measures
from neardup.matching.rule import Thresholds
from neardup.settings import Settings
from neardup.signatures.bands import BandFilter
from neardup.signatures.signature import NO_BANDS, SignatureOptions

MOST_BITS: Final = 32
"""Maximum k: random fingerprints differ in half of the 64 bits."""
VERDICT: Final = "verdict, threshold by folds"
_SHARES: Final = np.round(np.arange(0.02, 1.001, 0.02), 2)


@dataclass(frozen=True, slots=True)
class Method:
    """A way to recognise near-duplicates. `thresholds` has the threshold of each row of `predicted`."""

    name: str
    threshold: str
    thresholds: NDArray[np.float64]
    predicted: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Search:
    """Candidates that the tables of a deployment find: fingerprints within k bits, and pages with a shared band.

    Without `bands`, no table has bands.
    """

    k: int
    bands: BandFilter | None

    @classmethod
    def of(cls, settings: Settings) -> "Search":
        """Return the search of a deployment.

        The probabilistic search is treated like the exact search, which it approximates.
        """
        return cls(settings.hamming, None if settings.bands == NO_BANDS else SignatureOptions.of(settings).bands)


def found_by_search(measures: Measures, search: Search) -> NDArray[np.bool_]:
    """Return for each pair whether a table finds it: fingerprints within k bits, or a shared band."""
    near = measures.hamming <= search.k
    return near if search.bands is None else near | (measures.shared_bands(search.bands) > 0)


def accepted_by_rule(measures: Measures, thresholds: Thresholds) -> NDArray[np.bool_]:
    """Return for each pair whether the decision rule accepts it in either order; see `matching.rule.decide`."""
    near = measures.sketch >= thresholds.resemblance
    return measures.same | near | (measures.sketch_containment >= thresholds.containment)


def methods(measures: Measures, settings: Settings) -> list[Method]:
    """Return the verdict at every threshold of resemblance, and each method on all pairs without a search.

    Methods that combine two measures show the possible gain of a second sketch of running text, or of both directions
    of containment.
    """
    choices = SignatureOptions.of(settings)

    def above(name: str, threshold: str, scores: NDArray[np.float64], levels: NDArray[np.float64]) -> Method:
        return Method(name, threshold, levels, scores >= levels[:, None])

    bits = np.arange(MOST_BITS + 1)
    bands = choices.bands
    exact, spots = measures.exact, measures.spots
    running = np.where(spots == UNKNOWN, exact, spots)  # A page without stop words has no running text.
    is_found, contained = found_by_search(measures, Search.of(settings)), settings.contained
    verdicts = np.array(
        [is_found & accepted_by_rule(measures, Thresholds(level, contained)) for level in _SHARES.tolist()]
    )
    return [
        Method(VERDICT, "least", _SHARES, verdicts),
        Method("simhash", "k", bits.astype(float), measures.hamming <= bits[:, None]),
        above("resemblance, exact", "least", exact, _SHARES),
        above("resemblance, sketch", "least", measures.sketch, _SHARES),
        above("containment, exact", "least", measures.exact_containment, _SHARES),
        above("filter, r of k groups", "r", measures.groups.astype(float), np.arange(1.0, choices.filter.k + 1)),
        above("SpotSigs", "least", spots, _SHARES),
        above("resemblance or SpotSigs", "least", np.maximum(exact, running), _SHARES),
        above("resemblance and SpotSigs", "least", np.minimum(exact, running), _SHARES),
        above("mean of resemblance, SpotSigs", "least", (exact + running) / 2, _SHARES),
        above("mean of resemblance, containment", "least", (exact + measures.exact_containment) / 2, _SHARES),
        above("bands", "shared", measures.shared_bands(bands).astype(float), np.arange(1.0, bands.k + 1)),
        above("super shingles", "shared", measures.supers.astype(float), np.arange(1.0, 9.0)),
    ]
