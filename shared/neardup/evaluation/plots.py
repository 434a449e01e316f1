"""Charts of an evaluation, after the figures of the papers."""

import numpy as np
from numpy.typing import NDArray

from neardup.evaluation.measures import FAR, Measures
from neardup.evaluation.report import Evaluation, Point
from neardup.evaluation.svg_chart import Series, svg_of
from neardup.signatures.bands import BandFilter

_STEPS = 20
"""Number of steps on the axis of resemblance."""


def plots(found: Evaluation) -> dict[str, str]:
    """Return SVG by file name."""
    simhash = next(each for each in found.alone if each.name == "simhash")
    drawn = {"simhash.svg": _over_k(simhash.curve), "hamming.svg": _against_hamming(found.measures)}
    if found.search.bands is not None:
        drawn["bands.svg"] = _s_curve(found.measures, found.search.bands)
    return drawn


def _over_k(curve: list[Point]) -> str:
    """Draw precision and recall by k (Manku 2007, figure 1)."""
    precision = [(each.threshold, each.precision) for each in curve if not np.isnan(each.precision)]
    recall = [(each.threshold, each.recall) for each in curve]
    return svg_of(
        [Series("precision", precision), Series("recall", recall)],
        title="Precision and recall of simhash alone", across="k, bits that may differ", up="share", top=1.0,
    )  # fmt: skip


def _against_hamming(measures: Measures) -> str:
    """Draw resemblance by Hamming distance (Sood 2011, figure 6(b), with resemblance instead of cosine)."""
    known = measures.hamming < FAR
    apart, exact = measures.hamming[known], measures.exact[known]
    pairs = list(zip(apart.astype(float).tolist(), exact.tolist(), strict=True))
    means = [(float(bits), float(exact[apart == bits].mean())) for bits in np.unique(apart)]
    return svg_of(
        [Series("mean", means), Series("a pair", pairs, "dots")],
        title="Resemblance against Hamming distance", across="bits that differ, of 64", up="resemblance", top=1.0,
    )  # fmt: skip


def _s_curve(measures: Measures, bands: BandFilter) -> str:
    """Draw the expected acceptance of the bands (lecture V.5.4) and the measured acceptance."""
    places = (np.arange(_STEPS + 1) / _STEPS).tolist()
    promised = [(place, bands.acceptance(place)) for place in places]
    return svg_of(
        [
            Series(f"promised by {bands.k} bands of {bands.s}", promised),
            Series("measured", hits_by_resemblance(measures.exact, measures.shared_bands(bands) > 0), "dots"),
        ],
        title="Pairs that share a band", across="resemblance", up="share of pairs", top=1.0,
    )  # fmt: skip


def hits_by_resemblance(exact: NDArray[np.float64], hit: NDArray[np.bool_]) -> list[tuple[float, float]]:
    """Return the share of hits per step of resemblance, at the mean resemblance of the step."""
    step = np.minimum((exact * _STEPS).astype(int), _STEPS - 1)
    return [(float(exact[step == each].mean()), float(hit[step == each].mean())) for each in np.unique(step)]
