"""Simulated simhash weights of pages and of slightly changed copies, for what PSM needs."""

import numpy as np
from numpy.typing import NDArray

SPREAD = 0.055
"""How far a copy's weights are off: most copies then differ in 0 to 3 bits."""


def pages(rng: np.random.Generator, size: int) -> NDArray[np.float64]:
    """Weights as sums of many signed features: the tails are exponential (Sood 2011, figure 1)."""
    return rng.laplace(size=(size, 64))


def copies(rng: np.random.Generator, weights: NDArray[np.float64], spread: float = SPREAD) -> NDArray[np.float64]:
    """Weights after some features were taken away and others added; how much differs from page to page."""
    amount = spread * rng.exponential(size=(weights.shape[0], 1))
    return weights - rng.laplace(size=weights.shape) * amount


def fingerprints_of(weights: NDArray[np.float64]) -> NDArray[np.uint64]:
    """Algorithm 1 of the paper: a bit is the sign of its weight."""
    return np.packbits(weights >= 0, axis=1).view(">u8").ravel().astype(np.uint64)
