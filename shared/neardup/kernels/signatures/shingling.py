"""n-grams of token hashes, and sets and bags of hashes in open-addressed tables.

The leading bits of hash times salt select a slot of a table. The salt is secret, so that nobody can construct a page
whose words all have the same slot, which would take quadratic time.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from neardup.kernels.common.hashing import hash_threes, hash_words


@njit(nogil=True, cache=True)
def ngrams(tokens: NDArray[np.uint64], n: int) -> NDArray[np.uint64]:
    """Return the hash of every n successive tokens, in order, including repeats. For n = 1, return the tokens."""
    if n == 1:
        return tokens
    if n == 3:  # by far the most frequent case
        return hash_threes(tokens)
    count = max(tokens.size - n + 1, 0)
    out = np.empty(count, dtype=np.uint64)
    for i in range(count):
        out[i] = hash_words(tokens, i, i + n, np.uint64(0))
    return out


_SIEVE_BITS = 11


@njit(nogil=True, cache=True)
def _table_bits(count: int) -> int:
    bits = 4
    while (1 << bits) < 4 * count:  # few hashes then find their slot occupied, which would be a mispredicted branch
        bits += 1
    return bits


@njit(nogil=True, cache=True)
def _sieve(hashes: NDArray[np.uint64], salt: np.uint64, out: NDArray[np.uint64]) -> int:
    # Drop most repeats without a branch, by a table that fits the L1 cache. A slot holds only the latest hash with that
    # slot number, so a repeat is not dropped if another hash replaced it. The hash 0 has slot 0, which must not begin
    # as 0. It begins as 2^63, whose own slot is another one: 2^63 times an odd number is 2^63.
    table = np.zeros(1 << _SIEVE_BITS, dtype=np.uint64)
    table[0] = np.uint64(1) << np.uint64(63)
    count = np.uint64(0)
    for i in range(hashes.size):
        h = hashes[i]
        slot = h * salt >> np.uint64(64 - _SIEVE_BITS)
        out[count] = h
        count += np.uint64(table[slot] != h)
        table[slot] = h
    return np.int64(count)


@njit(nogil=True, cache=True)
def distinct(hashes: NDArray[np.uint64], salt: np.uint64) -> NDArray[np.uint64]:
    """Return each value once, in order of first occurrence. The salt is odd and affects only the choice of slots."""
    out = np.empty(hashes.size, dtype=np.uint64)
    left = out[: _sieve(hashes, salt, out)]
    bits = _table_bits(left.size)
    shift = np.uint64(64 - bits)
    mask = np.uint64((1 << bits) - 1)
    table = np.zeros(1 << bits, dtype=np.uint64)
    count = np.uint64(0)
    zero_seen = False
    for i in range(left.size):
        h = left[i]
        if h == 0:  # zero marks a free slot
            out[count] = h
            count += np.uint64(not zero_seen)
            zero_seen = True
            continue
        slot = h * salt >> shift
        while table[slot] != 0 and table[slot] != h:
            slot = slot + np.uint64(1) & mask
        out[count] = h
        count += np.uint64(table[slot] == 0)
        table[slot] = h
    return out[: np.int64(count)]


@njit(nogil=True, cache=True)
def sorted_ngrams(tokens: NDArray[np.uint64], n: int) -> NDArray[np.uint64]:
    """Return the distinct `ngrams`, sorted. For the short arrays of a sketch, for which np.unique has much overhead."""
    grams = np.sort(ngrams(tokens, n))
    count = 0
    for i in range(grams.size):
        if i == 0 or grams[i] != grams[i - 1]:
            grams[count] = grams[i]
            count += 1
    return grams[:count]


@njit(nogil=True, cache=True)
def counted(hashes: NDArray[np.uint64], salt: np.uint64) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Return each value once, in order of first occurrence, and its number of occurrences. See `distinct` for salt."""
    bits = _table_bits(hashes.size)
    shift = np.uint64(64 - bits)
    mask = (1 << bits) - 1
    table = np.zeros(1 << bits, dtype=np.int32)  # 1 + position in out
    out = np.empty(hashes.size, dtype=np.uint64)
    counts = np.empty(hashes.size, dtype=np.int64)
    count = 0
    for i in range(hashes.size):
        h = hashes[i]
        slot = np.int64(h * salt >> shift)
        while table[slot] != 0 and out[table[slot] - 1] != h:
            slot = (slot + 1) & mask
        if table[slot] == 0:
            out[count] = h
            counts[count] = 1
            count += 1
            table[slot] = count
        else:
            counts[table[slot] - 1] += 1
    return out[:count], counts[:count]


@njit(nogil=True, cache=True)
def places(sorted_keys: NDArray[np.uint64], hashes: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the position of each hash among the sorted keys, or -1."""
    out = np.empty(hashes.size, dtype=np.int64)
    for i in range(hashes.size):
        low = 0
        high = sorted_keys.size
        while low < high:
            middle = (low + high) // 2
            if sorted_keys[middle] < hashes[i]:
                low = middle + 1
            else:
                high = middle
        out[i] = low if low < sorted_keys.size and sorted_keys[low] == hashes[i] else -1
    return out


@njit(nogil=True, cache=True)
def word_table(keys: NDArray[np.uint64], bits: int) -> NDArray[np.uint64]:
    """Return an open-addressed table of 2^bits slots for `marks`, which the leading bits select. 0 is not a key."""
    table = np.zeros(1 << bits, dtype=np.uint64)
    for i in range(keys.size):
        slot = keys[i] >> np.uint64(64 - bits)
        while table[slot] != 0:
            slot = slot + np.uint64(1) & np.uint64(table.size - 1)
        table[slot] = keys[i]
    return table


@njit(nogil=True, cache=True)
def marks(table: NDArray[np.uint64], bits: int, hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Return for each hash whether it is in a `word_table`. The table must have free slots, and is fast with many."""
    out = np.empty(hashes.size, dtype=np.bool_)
    for i in range(hashes.size):
        h = hashes[i]
        slot = h >> np.uint64(64 - bits)
        there = table[slot]
        # The sum makes this one branch, which is rarely taken. A branch on either condition would be mispredicted.
        while np.uint64(there == h) + np.uint64(there == 0) == 0:
            slot = slot + np.uint64(1) & np.uint64(table.size - 1)
            there = table[slot]
        out[i] = (there == h) & (h != 0)
    return out


@njit(nogil=True, cache=True)
def common(a: NDArray[np.uint64], b: NDArray[np.uint64]) -> int:
    """Return the number of values that two sorted arrays without repeats share."""
    i = 0
    j = 0
    count = 0
    while i < a.size and j < b.size:
        if a[i] == b[j]:
            count += 1
            i += 1
            j += 1
        elif a[i] < b[j]:
            i += 1
        else:
            j += 1
    return count


@njit(nogil=True, cache=True)
def common_counted(
    a: NDArray[np.uint64], a_counts: NDArray[np.int64], b: NDArray[np.uint64], b_counts: NDArray[np.int64]
) -> int:
    """Return the size of the intersection of two bags, each given as sorted values and their counts."""
    i = 0
    j = 0
    count = np.int64(0)
    while i < a.size and j < b.size:
        if a[i] == b[j]:
            count += min(a_counts[i], b_counts[j])
            i += 1
            j += 1
        elif a[i] < b[j]:
            i += 1
        else:
            j += 1
    return count


@njit(nogil=True, cache=True)
def spots(tokens: NDArray[np.uint64], stop: NDArray[np.bool_], distance: int, chain: int) -> NDArray[np.uint64]:
    """Return the hash of every stop word with its chain: the `chain` following plain words, `distance` apart.

    Plain words are words that are not stop words. Distances are counted in plain words. Stop words near the end that
    have no complete chain are left out.
    """
    # Divide the tokens into two lists without a branch, which would often be mispredicted.
    plain = np.empty(tokens.size, dtype=np.uint64)
    anchors = np.empty(tokens.size, dtype=np.uint64)
    passed = np.empty(tokens.size, dtype=np.int64)  # number of plain words before each anchor
    count = np.uint64(0)
    found = np.uint64(0)
    for i in range(tokens.size):
        plain[count] = tokens[i]
        anchors[found] = tokens[i]
        passed[found] = np.int64(count)
        found += np.uint64(stop[i])
        count += np.uint64(not stop[i])
    reach = np.int64(count) - (distance - 1) - (chain - 1) * distance
    words = np.empty(chain + 1, dtype=np.uint64)
    out = anchors[: np.searchsorted(passed[: np.int64(found)], reach)]
    for i in range(out.size):
        words[0] = anchors[i]
        for j in range(chain):
            words[j + 1] = plain[passed[i] + distance - 1 + j * distance]
        out[i] = hash_words(words, 0, chain + 1, np.uint64(0))
    return out
