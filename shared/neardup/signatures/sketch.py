"""Sketches: a few hundred bytes per document from which resemblance and containment are estimated.

MIN_s, MOD_m and super shingles are defined in Broder 1997, "Estimating the resemblance and the containment"; the MIPs
vector is defined in lecture V.5.3 and Broder 2000 §2, and is computed in one pass instead of m (see
`kernels.signatures.sketching`). All functions accept shingles as distinct hashes.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from neardup.kernels.signatures import sketching
from neardup.kernels.signatures.shingling import common, sorted_ngrams

MOST: Final = 100
"""Maximum expected size of a sample V_i. For documents with more shingles than this, it is more than half as large."""


def min_s(shingles: NDArray[np.uint64], s: int) -> NDArray[np.uint64]:
    """Return MIN_s, the s smallest shingles, sorted."""
    picked: NDArray[np.uint64] = sketching.smallest(shingles, s)
    return picked


def resemblance_by_min_s(a: NDArray[np.uint64], b: NDArray[np.uint64], s: int) -> float:
    """Return the share of MIN_s(F(A) ∪ F(B)) that is in both sketches, an unbiased estimate of the resemblance."""
    union = np.union1d(a, b)[:s]
    if not union.size:
        return 1.0
    last = union[-1]
    return common(a[: np.searchsorted(a, last, "right")], b[: np.searchsorted(b, last, "right")]) / union.size


@dataclass(frozen=True, slots=True)
class Sample:
    """A sample V_i: the shingles that are 0 mod 2^i, sorted."""

    i: int
    values: NDArray[np.uint64]

    def coarser(self, i: int) -> NDArray[np.uint64]:
        """Return the sample at the modulus 2^i, where i is at least that of this sample."""
        if i == self.i:
            return self.values
        kept: NDArray[np.uint64] = self.values[self.values & np.uint64((1 << i) - 1) == 0]
        return kept


def modulus_exponent(size: int) -> int:
    """Return i for a document of `size` shingles: the smallest i for which size / 2^i is at most 100.

    Unless i is 0, the expected size of V_i is therefore between 50 and 100, which the paper promises and readers of
    sketches rely on. The paper's text uses V_i for sizes from 100·2^i on, which would give an expected size of 100 to
    200.
    """
    return max(0, (-(-size // MOST) - 1).bit_length())


def sample_of(shingles: NDArray[np.uint64]) -> Sample:
    """Return V_i of a document."""
    i = modulus_exponent(shingles.size)
    return Sample(i, sketching.divisible(shingles, i))


def resemblance_by_sample(a: Sample, b: Sample) -> float | None:
    """Return |V(A) ∩ V(B)| / |V(A) ∪ V(B)| at the modulus of the longer document, or None if both samples are empty."""
    left, right, shared = _aligned(a, b)
    union = left + right - shared
    return shared / union if union else None


def containment_by_sample(a: Sample, b: Sample) -> float | None:
    """Return |V(A) ∩ V(B)| / |V(A)|, the share of A that is in B, or None if the sample of A is empty.

    The estimate is imprecise if B is much longer than A, because few elements of A are left at the modulus of B. The
    paper notes that, too.
    """
    left, _, shared = _aligned(a, b)
    return shared / left if left else None


def _aligned(a: Sample, b: Sample) -> tuple[int, int, int]:
    i = max(a.i, b.i)
    left, right = a.coarser(i), b.coarser(i)
    return left.size, right.size, common(left, right)


def mips_of(shingles: NDArray[np.uint64], m: int) -> NDArray[np.uint32]:
    """Return the MIPs vector of length m. Shingles may repeat. Without shingles, every value is EMPTY."""
    vector: NDArray[np.uint32] = sketching.mips(shingles, m)
    return vector


def resemblance_by_mips(a: NDArray[np.uint32], b: NDArray[np.uint32]) -> float:
    """Return the share of equal values (lecture V.5.3). Raises ValueError if the vectors have different lengths."""
    if a.size != b.size:
        raise ValueError(f"expected two MIPs vectors of one length, got {a.size} and {b.size}")
    return sketching.equal_places(a, b) / a.size


def super_shingles(sketch: NDArray[np.uint64], size: int) -> NDArray[np.uint64]:
    """Return the super shingles of a sketch: a hash of every `size` successive values of the sorted sketch.

    Two long documents that share a super shingle are likely to resemble each other.
    """
    found: NDArray[np.uint64] = sorted_ngrams(sketch, size)
    return found
