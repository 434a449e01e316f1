"""Fingerprints for tests of the index: random, clustered, and edge cases."""

import os

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

EXAMPLES = int(os.environ.get("NEARDUP_TEST_EXAMPLES", "100"))
"""Number of examples. It is smaller when the JIT is off."""
EDGES = [0, 2**64 - 1, 1, 2**63, 2**63 - 1, 0x5555555555555555, 0xAAAAAAAAAAAAAAAA, 0xFFFFFFFF, 2**32]


def near_to(key: int) -> st.SearchStrategy[int]:
    """Generate copies of a key with up to five flipped bits."""
    flips = st.lists(st.integers(0, 63), max_size=5)
    return flips.map(lambda bits: key ^ sum({1 << bit for bit in bits}))


def clustered(centres: list[int]) -> st.SearchStrategy[int]:
    return st.sampled_from(centres).flatmap(near_to)


def fingerprints(most: int = 60) -> st.SearchStrategy[list[int]]:
    """Generate lists with repeats and with clusters around a few centres, including edge cases."""
    centre = st.one_of(st.sampled_from(EDGES), st.integers(0, 2**64 - 1))
    return st.lists(centre, min_size=1, max_size=4).flatmap(
        lambda centres: st.lists(st.one_of(clustered(centres), centre), min_size=1, max_size=most)
    )


def words(values: list[int]) -> NDArray[np.uint64]:
    return np.array(values, np.uint64)


def simulated(rng: np.random.Generator, size: int, clusters: int) -> NDArray[np.uint64]:
    """Return copies of random centres, each with a few flipped bits."""
    centres = rng.integers(0, 2**64, clusters, dtype=np.uint64)
    made = centres[rng.integers(0, clusters, size)]
    for _ in range(4):
        flip = rng.random(size) < 0.5
        made ^= np.where(flip, np.uint64(1) << rng.integers(0, 64, size, dtype=np.uint64), np.uint64(0))
    return made
