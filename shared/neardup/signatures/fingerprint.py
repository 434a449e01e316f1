"""Fingerprints: simhash of weighted features (Manku 2007 §2, Sood 2011 §4), and how far two are apart."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from neardup.kernels.signatures.simhashing import simhash
from neardup.signatures.features import Features

_EQUAL: Final = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """`value` has bit j set where `weights[j]`, the sum of votes on that bit, is not negative.

    A bit with a weight near 0 is the one that a small change flips first (Sood 2011 §4.3).
    """

    value: int
    weights: NDArray[np.int64]

    @property
    def width(self) -> int:
        """Number of bits."""
        return self.weights.size

    def likely_flips(self) -> NDArray[np.int64]:
        """The bits, most volatile first: by |weight|, then by number."""
        return np.argsort(np.abs(self.weights), kind="stable")


def fingerprint_of(features: Features, width: int = 64) -> Fingerprint:
    """Simhash of `width` bits, 32 to 128. Without features every vote is 0 and every bit 1: skip such documents."""
    assert 32 <= width <= 128
    votes, low, high = simhash(features.hashes, _EQUAL if features.weights is None else features.weights, width)
    return Fingerprint(int(high) << 64 | int(low), votes)


def hamming(a: int, b: int) -> int:
    """Return the number of bits in which two fingerprints differ."""
    return (a ^ b).bit_count()
