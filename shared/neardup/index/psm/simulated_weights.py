"""Simulated simhash weights of pages and of changed copies, for plans, benchmarks and tests of PSM without a corpus.

With these, the flips needed for 95% of the pairs within 3 bits are 6 at a header of 16 bits and 23 at one of 26: what
Sood & Loguinov 2011 measured on 70M web pages (figure 5a).
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

SPREAD: Final = 0.5
"""Mean deviation of a copy's weights, in units of the weights. About a quarter of the copies are within 3 bits."""


def pages(rng: np.random.Generator, size: int) -> NDArray[np.float64]:
    """Weights, 64 a page, with the exponential tails of Sood & Loguinov 2011, figure 1."""
    return rng.laplace(size=(size, 64))


def copies(rng: np.random.Generator, weights: NDArray[np.float64], spread: float = SPREAD) -> NDArray[np.float64]:
    """Weights after some features were taken away and others added; how much differs from page to page."""
    amount = spread * rng.exponential(size=(weights.shape[0], 1))
    return weights - rng.laplace(size=weights.shape) * amount


def fingerprints_of(weights: NDArray[np.float64]) -> NDArray[np.uint64]:
    """Algorithm 1 of the paper: a bit is the sign of its weight, the first one the most significant."""
    return np.packbits(weights >= 0, axis=1).view(">u8").ravel().astype(np.uint64)
