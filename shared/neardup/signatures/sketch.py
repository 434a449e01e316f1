"""Sketches: a few hundred bytes from which resemblance and containment are estimated.

MIN_s and MOD_m are Broder 1997, "Estimating the resemblance and the containment"; the MIPs vector is lecture V.5.3 and
Broder 2000 §2, made in one pass instead of m (see `kernels.sketching`); super shingles are Broder 1997's.
Every function takes shingles as their hashes, without repeats.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from neardup.kernels.signatures import sketching
from neardup.kernels.signatures.shingling import common, sorted_ngrams

MOST: Final = 100
"""V_i is expected to have at most this many elements, and more than half as many once the document has more."""


def min_s(shingles: NDArray[np.uint64], s: int) -> NDArray[np.uint64]:
    """MIN_s: the s smallest, sorted."""
    picked: NDArray[np.uint64] = sketching.smallest(shingles, s)
    return picked


def resemblance_by_min_s(a: NDArray[np.uint64], b: NDArray[np.uint64], s: int) -> float:
    """Unbiased: the share of MIN_s(F(A) ∪ F(B)) that is in both."""
    union = np.union1d(a, b)[:s]
    if not union.size:
        return 1.0
    last = union[-1]
    return common(a[: np.searchsorted(a, last, "right")], b[: np.searchsorted(b, last, "right")]) / union.size


@dataclass(frozen=True, slots=True)
class Sample:
    """V_i: the shingles that are 0 mod 2^i, sorted."""

    i: int
    values: NDArray[np.uint64]

    def coarser(self, i: int) -> NDArray[np.uint64]:
        """V_i from a finer one: keep what 2^i divides."""
        if i == self.i:
            return self.values
        kept: NDArray[np.uint64] = self.values[self.values & np.uint64((1 << i) - 1) == 0]
        return kept


def modulus_exponent(size: int) -> int:
    """The i for a document of `size` shingles: size / 2^i is above 50 and at most 100 (or i is 0).

    The paper's text gives V_i to sizes from 100·2^i on, where the expected size would be 100 to 200; what it promises,
    50 to 100, is what a reader of sketches relies on, so that is kept.
    """
    return max(0, (-(-size // MOST) - 1).bit_length())


def sample_of(shingles: NDArray[np.uint64]) -> Sample:
    """V_i of a document."""
    i = modulus_exponent(shingles.size)
    return Sample(i, sketching.divisible(shingles, i))


def resemblance_by_sample(a: Sample, b: Sample) -> float | None:
    """|V(A) ∩ V(B)| / |V(A) ∪ V(B)| at the modulus of the longer document; None if nothing was sampled."""
    left, right, shared = _aligned(a, b)
    union = left + right - shared
    return shared / union if union else None


def containment_by_sample(a: Sample, b: Sample) -> float | None:
    """|V(A) ∩ V(B)| / |V(A)|: how much of A is in B; None if nothing of A was sampled.

    Rough for a short A in a much longer B, which leaves few elements of A (the paper says so, too).
    """
    left, _, shared = _aligned(a, b)
    return shared / left if left else None


def _aligned(a: Sample, b: Sample) -> tuple[int, int, int]:
    i = max(a.i, b.i)
    left, right = a.coarser(i), b.coarser(i)
    return left.size, right.size, common(left, right)


def mips_of(shingles: NDArray[np.uint64], m: int) -> NDArray[np.uint32]:
    """The MIPs vector of length m; here repeats do no harm. No shingles: every place EMPTY."""
    vector: NDArray[np.uint32] = sketching.mips(shingles, m)
    return vector


def resemblance_by_mips(a: NDArray[np.uint32], b: NDArray[np.uint32]) -> float:
    """The share of places that agree (lecture V.5.3). Raises ValueError for vectors of different length."""
    if a.size != b.size:
        raise ValueError(f"expected two MIPs vectors of one length, got {a.size} and {b.size}")
    return sketching.equal_places(a, b) / a.size


def super_shingles(sketch: NDArray[np.uint64], size: int) -> NDArray[np.uint64]:
    """Shingles of the sorted sketch, `size` at a time. Sharing one makes a resemblance likely; for long documents."""
    found: NDArray[np.uint64] = sorted_ngrams(sketch, size)
    return found
