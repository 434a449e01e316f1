"""Fingerprints: simhash of weighted features (Manku 2007 §2, Sood 2011 §4), and the distance of two fingerprints."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from neardup.kernels.signatures.simhashing import simhash
from neardup.signatures.features import Features

_EQUAL: Final = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """A fingerprint. Bit j of `value` is set if `weights[j]`, the sum of the votes on the bit, is not negative.

    A small change of the page flips first the bits whose weights are near 0 (Sood 2011 §4.3).
    """

    value: int
    weights: NDArray[np.int64]

    @property
    def width(self) -> int:
        """Number of bits."""
        return self.weights.size

    def likely_flips(self) -> NDArray[np.int64]:
        """Return the bits by their probability of flipping, highest first: by |weight|, then by number."""
        return np.argsort(np.abs(self.weights), kind="stable")


def fingerprint_of(features: Features, width: int = 64) -> Fingerprint:
    """Return the simhash of `width` bits, from 32 to 128.

    Callers should skip documents without features: every sum of votes is then 0, and every bit 1.
    """
    assert 32 <= width <= 128
    votes, low, high = simhash(features.hashes, _EQUAL if features.weights is None else features.weights, width)
    return Fingerprint(int(high) << 64 | int(low), votes)


def hamming(a: int, b: int) -> int:
    """Return the number of bits in which two fingerprints differ."""
    return (a ^ b).bit_count()
