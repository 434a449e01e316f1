"""Min-wise sketches of a set of shingles (Broder 1997, "Estimating the resemblance"; Broder 2000 §2; lecture V.5.3).

A shingle's hash serves as its image under a random permutation, so the smallest hashes are a random sample.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from neardup.kernels.common.hashing import hash_word, hash_words

EMPTY = np.uint32(0xFFFFFFFF)
"""Value of a bin without shingles."""


@njit(nogil=True, cache=True)
def smallest(hashes: NDArray[np.uint64], s: int) -> NDArray[np.uint64]:
    """Return MIN_s, the s smallest of the distinct hashes, sorted, or all of them if there are at most s."""
    if hashes.size <= 2 * s:
        return np.sort(hashes)[:s]
    # Hashes are uniform, so at least s are nearly always below the bound that 2 s are expected to be below. If fewer
    # than s are, the bound is raised.
    bound = np.uint64(0xFFFFFFFFFFFFFFFF) // np.uint64(hashes.size) * np.uint64(2 * s)
    picked = np.empty(hashes.size, dtype=np.uint64)
    while True:
        count = 0
        for i in range(hashes.size):
            picked[count] = hashes[i]
            count += hashes[i] <= bound
            if count == picked.size:
                break
        if count >= s:
            return np.sort(picked[:count])[:s]
        bound = bound * np.uint64(2) if bound < np.uint64(1) << np.uint64(63) else np.uint64(0xFFFFFFFFFFFFFFFF)


@njit(nogil=True, cache=True)
def divisible(hashes: NDArray[np.uint64], i: int) -> NDArray[np.uint64]:
    """Return MOD_m with m = 2^i, the hashes that are 0 mod m, sorted."""
    mask = (np.uint64(1) << np.uint64(i)) - np.uint64(1)
    count = 0
    for j in range(hashes.size):
        count += (hashes[j] & mask) == 0
    picked = np.empty(count, dtype=np.uint64)
    count = 0
    for j in range(hashes.size):
        if (hashes[j] & mask) == 0:
            picked[count] = hashes[j]
            count += 1
    return np.sort(picked)


@njit(nogil=True, cache=True)
def bins(hashes: NDArray[np.uint64], m: int) -> NDArray[np.uint32]:
    """Divide the hashes into m bins and return the smallest hash of each bin (one-permutation hashing).

    The upper 32 bits select the bin, scaled so that m need not be a power of two, and the lower 32 bits are compared.
    A bin without hashes is EMPTY. A hash whose lower half equals EMPTY counts as EMPTY - 1.
    """
    out = np.full(m, EMPTY, dtype=np.uint32)
    size = np.uint64(m)
    low = np.uint64(0xFFFFFFFF)
    for i in range(hashes.size):
        h = hashes[i]
        place = (h >> np.uint64(32)) * size >> np.uint64(32)
        # Always write: in short documents the minimum changes so often that a branch would be mispredicted.
        out[place] = np.uint32(min(h & low, low - np.uint64(1), np.uint64(out[place])))
    return out


@njit(nogil=True, cache=True)
def densify(values: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Fill every empty bin from a full bin, which is found by a random walk that is the same for all documents.

    The walk of each bin is different. Two documents use the same bin if the first full bin of the walk is the same in
    both, which keeps the estimate unbiased (optimal densification, Shrivastava 2017). If no bin is full, all bins stay
    empty.
    """
    out = values.copy()
    full = False
    for i in range(values.size):
        full = full or values[i] != EMPTY
    if not full:
        return out
    size = np.uint64(values.size)
    for i in range(values.size):
        step = np.uint64(0)
        place = i
        while values[place] == EMPTY:
            step += np.uint64(1)
            h = hash_word(np.uint64(i) << np.uint64(32) | step, np.uint64(2))
            place = np.int64((h >> np.uint64(32)) * size >> np.uint64(32))
        out[i] = values[place]
    return out


@njit(nogil=True, cache=True)
def mips(hashes: NDArray[np.uint64], m: int) -> NDArray[np.uint32]:
    """Return the densified bins, a MIPs vector of length m. Repeated hashes do not affect the result."""
    return densify(bins(hashes, m))


@njit(nogil=True, cache=True)
def groups(values: NDArray[np.uint32], k: int, s: int) -> NDArray[np.uint64]:
    """Return a hash of each of k groups of s values, and of the number of the group (Broder 2000 §3)."""
    out = np.empty(k, dtype=np.uint64)
    words = np.empty(s + 1, dtype=np.uint64)
    for group in range(k):
        words[0] = np.uint64(group)
        for i in range(s):
            words[i + 1] = np.uint64(values[group * s + i])
        out[group] = hash_words(words, 0, s + 1, np.uint64(3))
    return out


@njit(nogil=True, cache=True)
def equal_places(a: NDArray[np.uint32], b: NDArray[np.uint32]) -> int:
    """Return the number of places in which two vectors agree."""
    count = 0
    for i in range(a.size):
        count += a[i] == b[i]
    return count
