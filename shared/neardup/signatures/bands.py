"""Locality-sensitive hashing of MIPs vectors (lecture V.5.4) and its generalization, the filter of Broder 2000.

A vector is cut into k groups of s values. Two documents of resemblance ρ share a group with probability ρ^s, and they
are accepted if they share at least r groups. Bands are the case r = 1.
"""

from dataclasses import dataclass
from math import comb, log

import numpy as np
from numpy.typing import NDArray

from neardup.kernels.signatures.sketching import groups


@dataclass(frozen=True, slots=True)
class BandFilter:
    """A filter on k groups of s values, which accepts two documents that agree in at least r groups."""

    k: int
    s: int
    r: int = 1

    def __post_init__(self) -> None:
        assert 1 <= self.r <= self.k
        assert self.s >= 1

    def acceptance(self, resemblance: float) -> float:
        """Return P_{k,s,r}(ρ), the probability that two documents of resemblance ρ are accepted (Broder 2000 §3)."""
        same = resemblance**self.s
        return sum(comb(self.k, i) * same**i * (1 - same) ** (self.k - i) for i in range(self.r, self.k + 1))

    def threshold(self) -> float:
        """Return the resemblance at which acceptance is one half, where the total error is least (Broder 2000 §4)."""
        low, high = 0.0, 1.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if self.acceptance(middle) < 0.5 else (low, middle)
        return high

    def keys(self, mips: NDArray[np.uint32]) -> NDArray[np.uint64]:
        """Return a hash of each group and its number. Raises ValueError if the vector is too short."""
        if mips.size < self.k * self.s:
            raise ValueError(f"expected a MIPs vector of at least {self.k * self.s} values, got {mips.size}")
        found: NDArray[np.uint64] = groups(mips, self.k, self.s)
        return found


def steepest_s(threshold: float) -> float:
    """Return the s for which ρ^s is steepest at the threshold: 1 / ln(1/ρ) (Broder 2000 §4, equation 3)."""
    return 1 / log(1 / threshold)


def choose_bands(m: int, threshold: float, *, missed_weight: float = 0.5) -> BandFilter:
    """Return the bands over at most m values whose acceptance curve has the smallest error at a threshold.

    The error is the total error of Broder 2000 §4 for r = 1: the area under the curve below the threshold, weighted by
    1 - `missed_weight`, plus the area over the curve above the threshold, weighted by `missed_weight`.
    """
    assert m >= 1
    assert 0 < threshold < 1
    best, least = BandFilter(1, 1), float("inf")
    for s in range(1, m + 1):
        for k in range(1, m // s + 1):
            error = _band_error(k, s, threshold, missed_weight)
            if error < least:
                best, least = BandFilter(k, s), error
    return best


def _band_error(k: int, s: int, threshold: float, missed_weight: float, steps: int = 200) -> float:
    places = (np.arange(steps) + 0.5) / steps
    accepted = 1 - (1 - places**s) ** k
    below = places < threshold
    wrong = accepted[below].sum() * (1 - missed_weight) + (1 - accepted[~below]).sum() * missed_weight
    return float(wrong) / steps
