"""n-grams of token hashes, and sets and bags of hashes in open-addressed tables.

Tables pick a slot by the leading bits of hash times salt. With a salt that nobody outside knows, nobody can make a page
whose words all fall into one slot, which would take quadratic time.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from neardup.kernels.common.hashing import hash_threes, hash_words


@njit(nogil=True, cache=True)
def ngrams(tokens: NDArray[np.uint64], n: int) -> NDArray[np.uint64]:
    """The hash of every n successive tokens, in order, repeats included; n = 1 is the tokens themselves."""
    if n == 1:
        return tokens
    if n == 3:  # by far the commonest
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
    while (1 << bits) < 4 * count:  # so that few hashes find their slot taken, which is a branch not foreseen
        bits += 1
    return bits


@njit(nogil=True, cache=True)
def _sieve(hashes: NDArray[np.uint64], salt: np.uint64, out: NDArray[np.uint64]) -> int:
    # Drops most repeats, without a branch, in a table that stays in the nearest cache: a slot keeps only the last hash
    # that came to it, so a repeat is missed where another came between. Slot 0 starts with a hash that belongs
    # elsewhere (2^63 times anything odd is 2^63), as 0 belongs there.
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
    """Each value once, in the order of first occurrence. The salt is odd and changes only which slots are used."""
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
    """The distinct `ngrams`, sorted. For the few of a sketch, where np.unique would take longer to call than to run."""
    grams = np.sort(ngrams(tokens, n))
    count = 0
    for i in range(grams.size):
        if i == 0 or grams[i] != grams[i - 1]:
            grams[count] = grams[i]
            count += 1
    return grams[:count]


@njit(nogil=True, cache=True)
def counted(hashes: NDArray[np.uint64], salt: np.uint64) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Each value once, in the order of first occurrence, and how often it occurs. The salt is as for `distinct`."""
    bits = _table_bits(hashes.size)
    shift = np.uint64(64 - bits)
    mask = (1 << bits) - 1
    table = np.zeros(1 << bits, dtype=np.int32)  # 1 + place in out
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
    """An open-addressed table of 2^bits slots for `marks`: a key stands at its leading bits or behind. 0 is no key."""
    table = np.zeros(1 << bits, dtype=np.uint64)
    for i in range(keys.size):
        slot = keys[i] >> np.uint64(64 - bits)
        while table[slot] != 0:
            slot = slot + np.uint64(1) & np.uint64(table.size - 1)
        table[slot] = keys[i]
    return table


@njit(nogil=True, cache=True)
def marks(table: NDArray[np.uint64], bits: int, hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Which hashes are in a `word_table`, which must have free slots, and many of them to be fast."""
    out = np.empty(hashes.size, dtype=np.bool_)
    for i in range(hashes.size):
        h = hashes[i]
        slot = h >> np.uint64(64 - bits)
        there = table[slot]
        # Added up, so that it is one branch: seldom taken, while neither part of it could be predicted.
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
    """Size of the intersection of two bags, each given by sorted values and their counts."""
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
    """The hash of every stop word with its chain: `chain` words that are no stop words, `distance` apart.

    Distances are counted in words that are no stop words. Too near the end there is no chain.
    """
    # Sorted into two lists without a branch, as which word is a stop word cannot be predicted.
    plain = np.empty(tokens.size, dtype=np.uint64)
    anchors = np.empty(tokens.size, dtype=np.uint64)
    passed = np.empty(tokens.size, dtype=np.int64)  # plain words before each anchor
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
