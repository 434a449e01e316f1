"""Min-wise sketches of a set of shingles (Broder 1997, "Estimating the resemblance"; Broder 2000 §2; lecture V.5.3).

A shingle's hash stands for its image under one random permutation, so what is smallest among the hashes is a sample.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from neardup.kernels.common.hashing import hash_word, hash_words

EMPTY = np.uint32(0xFFFFFFFF)
"""A bin that no shingle fell into."""


@njit(nogil=True, cache=True)
def smallest(hashes: NDArray[np.uint64], s: int) -> NDArray[np.uint64]:
    """MIN_s: the s smallest of the distinct hashes, sorted; all of them if there are no more."""
    if hashes.size <= 2 * s:
        return np.sort(hashes)[:s]
    # Hashes are uniform: a bound that lets through about 2 s of them nearly always holds s. If not, raise it.
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
    """MOD_m with m = 2^i: the hashes that are 0 mod m, sorted."""
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
    """One-permutation hashing: cut the image of the permutation into m bins and keep the least of each.

    The leading 32 bits pick the bin, so that m need not be a power of two; the other 32 are compared. EMPTY stays
    where no hash fell; a hash whose low half is EMPTY counts as one less.
    """
    out = np.full(m, EMPTY, dtype=np.uint32)
    size = np.uint64(m)
    low = np.uint64(0xFFFFFFFF)
    for i in range(hashes.size):
        h = hashes[i]
        place = (h >> np.uint64(32)) * size >> np.uint64(32)
        # Written always: in a short document the least changes too often to guess when.
        out[place] = np.uint32(min(h & low, low - np.uint64(1), np.uint64(out[place])))
    return out


@njit(nogil=True, cache=True)
def densify(values: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Fill every empty bin from a full one, picked by a random walk of its own that is the same for all documents.

    So two documents take the same bin exactly when their walks first meet a full bin together, which keeps
    the estimate unbiased (optimal densification, Shrivastava 2017). With no full bin everything stays empty.
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
    """The densified bins: a MIPs vector of length m. Repeats among the hashes change nothing."""
    return densify(bins(hashes, m))


@njit(nogil=True, cache=True)
def groups(values: NDArray[np.uint32], k: int, s: int) -> NDArray[np.uint64]:
    """Broder 2000 §3: k groups of s values each, and the hash of each group with its number."""
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
