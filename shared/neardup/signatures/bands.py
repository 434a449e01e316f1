"""Locality-sensitive hashing of MIPs vectors (lecture V.5.4) and Broder 2000's filter, which generalises it.

A vector is cut into k groups of s values; two documents share a group with probability ρ^s and are accepted if they
share r or more. Bands are the case r = 1.
"""

from dataclasses import dataclass
from math import comb, log

import numpy as np
from numpy.typing import NDArray

from neardup.kernels.signatures.sketching import groups


@dataclass(frozen=True, slots=True)
class BandFilter:
    """k groups of s values, of which r must agree."""

    k: int
    s: int
    r: int = 1

    def __post_init__(self) -> None:
        assert 1 <= self.r <= self.k
        assert self.s >= 1

    def acceptance(self, resemblance: float) -> float:
        """P_{k,s,r}(ρ), the probability that two documents of this resemblance are accepted (Broder 2000 §3)."""
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
        """The hash of each group with its number. Raises ValueError if the vector is too short."""
        if mips.size < self.k * self.s:
            raise ValueError(f"expected a MIPs vector of at least {self.k * self.s} values, got {mips.size}")
        found: NDArray[np.uint64] = groups(mips, self.k, self.s)
        return found


def steepest_s(threshold: float) -> float:
    """The s for which ρ^s is steepest at the threshold: 1 / ln(1/ρ) (Broder 2000 §4, equation 3)."""
    return 1 / log(1 / threshold)


def choose_bands(m: int, threshold: float, *, missed_weight: float = 0.5) -> BandFilter:
    """The bands over at most m values whose S-curve errs least around a threshold.

    The error is the area under the curve below the threshold plus, weighted by `missed_weight`, the area
    above the curve beyond it (Broder 2000 §4's total error, with r = 1); 0.5 weighs both alike.
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
