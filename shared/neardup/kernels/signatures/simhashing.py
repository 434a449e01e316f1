"""Simhash: the weighted vote of the features' hashes on every bit (Manku 2007 §2; Sood 2011 §4.1, Algorithm 1)."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from neardup.kernels.common.hashing import hash_each, hash_word
from neardup.kernels.common.no_refcounts import njit_no_refcounts

_PLANES = 40
"""Number of bits of a counter. 2^40 features do not fit in memory, so counters do not overflow."""


@njit(nogil=True, cache=True)
def _add(a: np.uint64, b: np.uint64, c: np.uint64) -> tuple[np.uint64, np.uint64]:
    # 64 parallel full adders: return the low bits of the sums, and the carries.
    either = a ^ b
    return either ^ c, (a & b) | (either & c)


@njit_no_refcounts
def _ripple(planes: NDArray[np.uint64], p: int, carry: np.uint64) -> None:
    while carry:
        both = planes[p] & carry
        planes[p] ^= carry
        carry = both
        p += 1


@njit(nogil=True, cache=True)
def _count_ones(hashes: NDArray[np.uint64], ones: NDArray[np.int64]) -> None:
    # This is a positional population count. Plane p contains bit p of each of the 64 counters, so one addition updates
    # all counters. Eight hashes are added by a tree of adders before a carry propagates to the higher planes.
    planes = np.zeros(_PLANES, dtype=np.uint64)
    p0 = np.uint64(0)
    p1 = np.uint64(0)
    p2 = np.uint64(0)
    whole = hashes.size // 8 * 8
    for first in range(0, whole, 8):
        i = np.uint64(first)
        p0, a = _add(p0, hashes[i], hashes[i + np.uint64(1)])
        p0, b = _add(p0, hashes[i + np.uint64(2)], hashes[i + np.uint64(3)])
        p1, c = _add(p1, a, b)
        p0, a = _add(p0, hashes[i + np.uint64(4)], hashes[i + np.uint64(5)])
        p0, b = _add(p0, hashes[i + np.uint64(6)], hashes[i + np.uint64(7)])
        p1, d = _add(p1, a, b)
        p2, carry = _add(p2, c, d)
        _ripple(planes, 3, carry)
    planes[0] = p0
    planes[1] = p1
    planes[2] = p2
    for rest in range(whole, hashes.size):
        _ripple(planes, 0, hashes[rest])
    for p in range(_PLANES):
        if planes[p]:
            for bit in range(64):
                ones[bit] += np.int64(planes[p] >> np.uint64(bit) & np.uint64(1)) << p


@njit(nogil=True, cache=True)
def vote_equal(hashes: NDArray[np.uint64], width: int) -> NDArray[np.int64]:
    """Return W of Sood's Algorithm 1 with every weight 1. Bits from 64 on are from a hash of the hash, with seed 1."""
    ones = np.zeros(128, dtype=np.int64)
    _count_ones(hashes, ones[:64])
    if width > 64:
        _count_ones(hash_each(hashes, np.uint64(1)), ones[64:])
    return 2 * ones[:width] - hashes.size


@njit(nogil=True, cache=True)
def vote(hashes: NDArray[np.uint64], weights: NDArray[np.int64], width: int) -> NDArray[np.int64]:
    """Return W of Sood's Algorithm 1 with integer weights, whose sum does not depend on their order."""
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
def signs(votes: NDArray[np.int64]) -> tuple[np.uint64, np.uint64]:
    """Return the fingerprint as (low, high) words. A bit is 1 if its vote is not negative (Algorithm 1, line 13)."""
    low = np.uint64(0)
    high = np.uint64(0)
    for bit in range(min(votes.size, 64)):
        low |= np.uint64(votes[bit] >= 0) << np.uint64(bit)
    for bit in range(64, votes.size):
        high |= np.uint64(votes[bit] >= 0) << np.uint64(bit - 64)
    return low, high


@njit(nogil=True, cache=True)
def simhash(
    hashes: NDArray[np.uint64], weights: NDArray[np.int64], width: int
) -> tuple[NDArray[np.int64], np.uint64, np.uint64]:
    """Return the votes and their signs. If `weights` is empty, every weight is 1.

    A single kernel computes both, because a call takes longer than the work on most pages.
    """
    votes = vote(hashes, weights, width) if weights.size else vote_equal(hashes, width)
    low, high = signs(votes)
    return votes, low, high
