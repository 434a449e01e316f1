"""Comparison of the sketches of many pairs of documents."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from neardup.kernels.signatures.comparing import compare_samples, equal_bytes, mips_length, resemblance

NEVER = np.inf
"""Value of `enough` that no resemblance reaches, so that containment is computed for all pairs."""


@njit(nogil=True, cache=True)
def likenesses(
    a: NDArray[np.uint32],
    b: NDArray[np.uint32],
    words: NDArray[np.uint64],
    starts: NDArray[np.int64],
    least_sampled: int,
    enough: float,
) -> NDArray[np.float64]:
    """Return one row per pair: resemblance, containment of a in b, and containment of b in a.

    The sketch of a row begins at starts[row]. Containment is -1 if the sample has fewer than `least_sampled` shingles
    left. It is also -1 for pairs whose resemblance is at least `enough`: they need no containment, which takes most of
    the time.
    """
    found = np.full((a.size, 3), -1.0)
    for i in range(a.size):
        one = words[starts[a[i]] : starts[np.int64(a[i]) + 1]]
        other = words[starts[b[i]] : starts[np.int64(b[i]) + 1]]
        found[i, 0] = resemblance(equal_bytes(one, other), mips_length(one))
        if found[i, 0] >= enough:
            continue
        left, right, shared = compare_samples(one, other)
        if left >= least_sampled:
            found[i, 1] = shared / left
        if right >= least_sampled:
            found[i, 2] = shared / right
    return found


@njit(nogil=True, cache=True)
def resemblances(
    a: NDArray[np.uint32], b: NDArray[np.uint32], words: NDArray[np.uint64], starts: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the resemblance of each pair, without containment."""
    found = np.empty(a.size)
    for i in range(a.size):
        one = words[starts[a[i]] : starts[np.int64(a[i]) + 1]]
        other = words[starts[b[i]] : starts[np.int64(b[i]) + 1]]
        found[i] = resemblance(equal_bytes(one, other), mips_length(one))
    return found
