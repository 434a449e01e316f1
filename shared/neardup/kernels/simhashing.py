"""Simhash: the weighted vote of the features' hashes on every bit (Manku 2007 §2; Sood 2011 §4.1, Algorithm 1)."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from neardup.kernels.hashing import hash_word

SPREAD = np.array([sum((byte >> bit & 1) << (8 * bit) for bit in range(8)) for byte in range(256)], dtype=np.uint64)
"""The eight bits of a byte, each in a byte of its own: eight counters in one addition."""


@njit(nogil=True, cache=True)
def _half_votes(hashes: NDArray[np.uint64], spread: NDArray[np.uint64], votes: NDArray[np.int64], seed: int) -> None:
    # Counts ones, bit by bit, in byte-wide counters that are emptied before they can overflow.
    done = 0
    while done < hashes.size:
        end = min(done + 255, hashes.size)
        a0 = np.uint64(0)
        a1 = np.uint64(0)
        a2 = np.uint64(0)
        a3 = np.uint64(0)
        a4 = np.uint64(0)
        a5 = np.uint64(0)
        a6 = np.uint64(0)
        a7 = np.uint64(0)
        low = np.uint64(255)
        for i in range(done, end):
            h = hashes[i]
            if seed:
                h = hash_word(h, np.uint64(seed))
            a0 += spread[h & low]
            a1 += spread[h >> np.uint64(8) & low]
            a2 += spread[h >> np.uint64(16) & low]
            a3 += spread[h >> np.uint64(24) & low]
            a4 += spread[h >> np.uint64(32) & low]
            a5 += spread[h >> np.uint64(40) & low]
            a6 += spread[h >> np.uint64(48) & low]
            a7 += spread[h >> np.uint64(56)]
        for bit in range(8):
            by = np.uint64(8 * bit)
            votes[bit] += np.int64(a0 >> by & low)
            votes[8 + bit] += np.int64(a1 >> by & low)
            votes[16 + bit] += np.int64(a2 >> by & low)
            votes[24 + bit] += np.int64(a3 >> by & low)
            votes[32 + bit] += np.int64(a4 >> by & low)
            votes[40 + bit] += np.int64(a5 >> by & low)
            votes[48 + bit] += np.int64(a6 >> by & low)
            votes[56 + bit] += np.int64(a7 >> by & low)
        done = end


@njit(nogil=True, cache=True)
def vote_equal(hashes: NDArray[np.uint64], spread: NDArray[np.uint64], width: int) -> NDArray[np.int64]:
    """W of Sood's Algorithm 1 with every weight 1. Bits 64 and up come from the hash's own hash with seed 1."""
    votes = np.zeros(128, dtype=np.int64)
    _half_votes(hashes, spread, votes[:64], 0)
    if width > 64:
        _half_votes(hashes, spread, votes[64:], 1)
    return 2 * votes[:width] - hashes.size


@njit(nogil=True, cache=True)
def vote(hashes: NDArray[np.uint64], weights: NDArray[np.int64], width: int) -> NDArray[np.int64]:
    """W of Sood's Algorithm 1 with whole-numbered weights, which add up to the same sum in any order."""
    ones = np.zeros(128, dtype=np.int64)
    total = np.int64(0)
    for i in range(hashes.size):
        h = hashes[i]
        w = weights[i]
        total += w
        for bit in range(64):
            ones[bit] += -np.int64(h >> np.uint64(bit) & np.uint64(1)) & w
        if width > 64:
            h = hash_word(h, np.uint64(1))
            for bit in range(64):
                ones[64 + bit] += -np.int64(h >> np.uint64(bit) & np.uint64(1)) & w
    return 2 * ones[:width] - total


@njit(nogil=True, cache=True)
def signs(votes: NDArray[np.int64]) -> NDArray[np.uint64]:
    """The fingerprint as (low, high) words: a bit is 1 where the vote is not negative (Algorithm 1, line 13)."""
    words = np.zeros(2, dtype=np.uint64)
    for bit in range(votes.size):
        if votes[bit] >= 0:
            words[bit // 64] |= np.uint64(1) << np.uint64(bit % 64)
    return words
