"""Postings, which are a key and a row in one word, and the pairs of rows that share keys.

This is the clustering algorithm of Broder 1997. The leading 8 bits of a key are its partition. In the partition a
posting consists of the next 24 bits of the key, its last 8 bits, and 32 bits for the row. So 40 bits of a key are kept,
as many as Broder kept of a shingle. Sometimes two keys agree in these bits; the comparison of the documents corrects
that. The last bits determine which power of two divides the key, and thus which samples contain it.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

PARTITIONS = 256
_MODULI = 256
"""Number of exponents of moduli that fit a byte of a sketch."""
LEVELS = 5
"""Number of moduli, from a sample's own modulus on, for which the size of the sample is precomputed."""
MOST = 65535
"""Maximum number of keys that is stored. It stands for this number or more."""
KEPT = np.uint64(0xFFFFFFFF000000FF)
"""The bits of a key that are kept."""
_PARTITION_AT = np.uint64(56)
_KEY = np.uint64(0xFFFFFFFF00000000)
_ROW = np.uint64(0xFFFFFFFF)
_LAST_BITS = 8
_LAST = np.uint64((1 << _LAST_BITS) - 1)
_ROW_BITS = np.uint64(32)


class TakingPart(NamedTuple):
    """The keys in which each row takes part, given as limits on the keys' rarity. There is one entry per row.

    Two rows are paired by a shared key if the smaller row takes part in the key: the row with fewer keys at the coarser
    of their two moduli. The fewer keys it has, the fewer the two rows may share, and the higher its limit must be. Keys
    without moduli have a single level, whose limits in `as_smaller` equal `reach`.
    """

    reach: NDArray[np.uint8]
    """Highest rarity of keys in which the row takes part at all; 0 if it takes part in none."""
    exponents: NDArray[np.uint8]
    """Exponent of the modulus of the row's keys."""
    sizes: NDArray[np.uint16]
    """Number of the row's keys at its own modulus and at each following one, or MOST for MOST or more."""
    as_smaller: NDArray[np.uint8]
    """Highest rarity of keys in which the row takes part as the smaller row, at each of these moduli."""


class PairRules(NamedTuple):
    """The selection of the pairs of rows that `expand` writes, and their form."""

    first_new: int
    """Least second row of a pair."""
    common: int
    """Maximum number of rows of a key. Keys with more rows are ignored."""
    row_bits: int
    """Number of bits of a row. A pair of rows a and b is written as a << row_bits | b."""


@njit(nogil=True, cache=True)
def _posting(key: np.uint64) -> np.uint64:
    """Return the posting of a key in its partition for row 0."""
    return (key << np.uint64(8) & _KEY & ~(_LAST << _ROW_BITS)) | (key & _LAST) << _ROW_BITS


@njit(nogil=True, cache=True)
def count_partitions(keys: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the number of keys of each partition."""
    counts = np.zeros(PARTITIONS, np.int64)
    for i in range(keys.size):
        counts[keys[i] >> _PARTITION_AT] += 1
    return counts


@njit(nogil=True, cache=True)
def divide(
    keys: NDArray[np.uint64],
    sizes: NDArray[np.int64],
    rows: NDArray[np.int64],
    places: NDArray[np.int64],
    out: NDArray[np.uint64],
) -> None:
    """Write the postings of rows to their partitions in `out`. Row i has the next `sizes[i]` keys.

    `places` contains the position of the next posting of each partition and is updated.
    """
    at = 0
    for i in range(rows.size):
        row = np.uint64(rows[i])
        for _ in range(sizes[i]):
            key = keys[at]
            partition = key >> _PARTITION_AT
            out[places[partition]] = _posting(key) | row
            places[partition] += 1
            at += 1


@njit(nogil=True, cache=True)
def find(
    words: NDArray[np.uint64], starts: NDArray[np.int64], keys: NDArray[np.uint64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the postings of the given keys: the position of the key in `keys`, and the row."""
    first = np.empty(keys.size, np.int64)
    counts = np.zeros(keys.size, np.int64)
    for i in range(keys.size):
        partition = np.int64(keys[i] >> _PARTITION_AT)
        wanted = _posting(keys[i])
        low = starts[partition]
        end = starts[partition + 1]
        high = end
        while low < high:
            middle = (low + high) >> 1
            if words[middle] < wanted:
                low = middle + 1
            else:
                high = middle
        first[i] = low
        while low < end and words[low] & _KEY == wanted:
            low += 1
        counts[i] = low - first[i]
    places = np.empty(counts.sum(), np.int64)
    rows = np.empty(places.size, np.int64)
    at = 0
    for i in range(keys.size):
        for j in range(first[i], first[i] + counts[i]):
            places[at] = i
            rows[at] = np.int64(words[j] & _ROW)
            at += 1
    return places, rows


@njit(nogil=True, cache=True)
def rarity(size: int) -> int:
    """Return the rarity of a key with `size` rows: the bit length of the number, 1 for the rarest keys."""
    bits = 0
    while size:
        size >>= 1
        bits += 1
    return bits


@njit(nogil=True, cache=True)
def _rows_of_key(
    words: NDArray[np.uint64], start: int, reach: NDArray[np.uint8], rows: NDArray[np.int64]
) -> tuple[int, int]:
    """Write the rows of the key at `start` that have a reach to `rows`, until it is full.

    Returns the start of the next key and the number of rows with a reach, which may exceed the size of `rows`.
    """
    key = words[start] & _KEY
    end = start
    count = 0
    last = np.int64(-1)
    while end < words.size and words[end] & _KEY == key:
        row = np.int64(words[end] & _ROW)
        # A row occurs twice if two of its keys agree in the bits that are kept.
        if reach[row] and row != last:
            if count < rows.size:
                rows[count] = row
            count += 1
        last = row
        end += 1
    return end, count


@njit(nogil=True, cache=True)
def count_rarities(
    words: NDArray[np.uint64],
    reach: NDArray[np.uint8],
    exponents: NDArray[np.uint8],
    common: int,
    counts: NDArray[np.uint8],
) -> None:
    """Add the keys of a partition that are not common to `counts[row, level, rarity]`, for each row with a reach.

    Level 0 counts all keys of a row. Level n counts those that are also in a sample whose modulus is n steps coarser,
    as far as the last 8 bits of the key determine it. A count of 255 stands for 255 or more.
    """
    rows = np.empty(common, np.int64)
    at = 0
    while at < words.size:
        last_bits = words[at] >> _ROW_BITS & _LAST
        at, count = _rows_of_key(words, at, reach, rows)
        if count > common:
            continue
        power = 0
        while power < _LAST_BITS and not last_bits >> np.uint64(power) & np.uint64(1):
            power += 1
        how_rare = rarity(count)
        for i in range(count):
            row = rows[i]
            coarser: int = max(power - np.int64(exponents[row]), 0)
            for level in range(min(coarser + 1, counts.shape[1])):
                if counts[row, level, how_rare] < 255:
                    counts[row, level, how_rare] += np.uint8(1)


@njit(nogil=True, cache=True)
def reach_of(
    counts: NDArray[np.uint8], level: int, sizes: NDArray[np.int64], needed: NDArray[np.int64]
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return for each row the least rarity beyond which it has fewer keys than `needed`, and the number of these keys.

    `sizes` are the numbers of keys at the level. Keys that were not counted are beyond every rarity. If these alone are
    as many as needed, the result is the highest rarity.
    """
    reach = np.empty(sizes.size, np.uint8)
    left = np.empty(sizes.size, np.int64)
    for row in range(sizes.size):
        beyond = sizes[row]
        for how_rare in range(counts.shape[2]):
            beyond -= np.int64(counts[row, level, how_rare])
            if beyond < needed[row] or how_rare == counts.shape[2] - 1:
                reach[row] = how_rare
                left[row] = beyond
                break
    return reach, left


@njit(nogil=True, cache=True)
def _meet(who: TakingPart, a: int, b: int, how_rare: int) -> bool:
    """Return True if the smaller of two rows takes part in a common key of this rarity."""
    apart = np.int64(who.exponents[b]) - np.int64(who.exponents[a])
    if abs(apart) >= who.sizes.shape[1]:
        # The size of the finer sample at the coarser modulus is not known.
        return True
    of_a: int = max(apart, 0)
    of_b: int = max(-apart, 0)
    size_a = who.sizes[a, of_a]
    size_b = who.sizes[b, of_b]
    a_wants = (size_a <= size_b) & (how_rare <= who.as_smaller[a, of_a])
    b_wants = (size_b <= size_a) & (how_rare <= who.as_smaller[b, of_b])
    return a_wants | b_wants


@njit(nogil=True, cache=True)
def _list(
    who: TakingPart, rows: NDArray[np.int64], i: int, how_rare: int, last: NDArray[np.int32], before: NDArray[np.int32]
) -> None:
    """Add row i of a key to the linked lists of rows with its modulus.

    There is one list per level, with the rows that take part as the smaller row at this level, and one more list with
    all rows. `last` has the head of each list, and `before` the row that follows a row in a list.
    """
    row = rows[i]
    exponent = who.exponents[row]
    levels = who.as_smaller.shape[1]
    for level in range(levels + 1):
        if level == levels or how_rare <= who.as_smaller[row, level]:
            before[i, level] = last[exponent, level]
            last[exponent, level] = i


@njit(nogil=True, cache=True)
def expand(
    words: NDArray[np.uint64],
    start: int,
    done: int,
    who: TakingPart,
    rules: PairRules,
    out: NDArray[np.uint64],
    filled: int,
    ignored: NDArray[np.int64],
) -> tuple[int, int, int]:
    """Write the pairs of rows that share a key of a partition to `out`, until it is full.

    Begins at the key at `start`, of which `done` rows are paired with the rows before them already. Returns `start` and
    `done` for the next call and the number of pairs in `out`, which must have room for rules.common pairs. Ignored keys
    and their rows are counted in `ignored`.
    """
    first_new, common, row_bits = rules
    rows = np.empty(common, np.int64)
    levels = who.as_smaller.shape[1]
    last = np.empty((_MODULI, levels + 1), np.int32)
    before = np.empty((common, levels + 1), np.int32)
    shift = np.uint64(row_bits)
    while start < words.size:
        # Most keys have one row.
        if start + 1 == words.size or (words[start] ^ words[start + 1]) & _KEY:
            start += 1
            continue
        end, count = _rows_of_key(words, start, who.reach, rows)
        if count > common:
            ignored[0] += 1
            ignored[1] += count
        elif count > 1 and rows[count - 1] >= first_new:
            how_rare = rarity(count)
            taking_part = 0
            least = _MODULI
            most = 0
            for i in range(count):
                rows[taking_part] = rows[i]
                if who.reach[rows[i]] >= how_rare:
                    least = min(least, np.int64(who.exponents[rows[i]]))
                    most = max(most, np.int64(who.exponents[rows[i]]))
                    taking_part += 1
            last[least : most + 1] = -1
            for j in range(taking_part):
                if j >= done and rows[j] >= first_new:
                    if filled + j > out.size:
                        return start, j, filled
                    if levels == 1:
                        # Keys have no moduli: a row is paired with all earlier rows that take part.
                        for i in range(j):
                            out[filled + i] = np.uint64(rows[i]) << shift | np.uint64(rows[j])
                        filled += j
                        continue
                    own = np.int64(who.exponents[rows[j]])
                    for exponent in range(least, most + 1):
                        # If this row takes part as the smaller row at the coarser modulus, pair it with any row of this
                        # exponent, and otherwise only with rows that take part there as the smaller row.
                        level: int = max(exponent - own, 0)
                        with_all = abs(exponent - own) >= levels
                        if not with_all:
                            with_all = how_rare <= who.as_smaller[rows[j], level]
                        level = levels if with_all else max(own - exponent, 0)
                        i = last[exponent, level]
                        while i >= 0:
                            # Without a branch: a pair that does not meet is overwritten.
                            out[filled] = np.uint64(rows[i]) << shift | np.uint64(rows[j])
                            filled += _meet(who, rows[i], rows[j], how_rare)
                            i = before[i, level]
                if levels > 1:
                    _list(who, rows, j, how_rare, last, before)
        start = end
        done = 0
    return start, 0, filled


@njit(nogil=True, cache=True)
def count_equal(pairs: NDArray[np.uint64], counts: NDArray[np.uint32]) -> int:
    """Remove repeats from sorted pairs, count how often each occurred, and return the number of distinct pairs."""
    kept = 0
    for i in range(pairs.size):
        if kept and pairs[kept - 1] == pairs[i]:
            counts[kept - 1] += np.uint32(1)
        else:
            pairs[kept] = pairs[i]
            counts[kept] = np.uint32(1)
            kept += 1
    return kept


@njit(nogil=True, cache=True)
def merge_counted(
    pairs: NDArray[np.uint64],
    counts: NDArray[np.uint32],
    others: NDArray[np.uint64],
    other_counts: NDArray[np.uint32],
) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
    """Merge two sorted runs. If a pair is in both, its counts are added."""
    merged = np.empty(pairs.size + others.size, np.uint64)
    merged_counts = np.empty(merged.size, np.uint32)
    i = 0
    j = 0
    at = 0
    while i < pairs.size and j < others.size:
        x = pairs[i]
        y = others[j]
        # Without branches, as a branch on the next pair would often be mispredicted.
        merged[at] = min(x, y)
        merged_counts[at] = (counts[i] if x <= y else np.uint32(0)) + (other_counts[j] if y <= x else np.uint32(0))
        i += x <= y
        j += y <= x
        at += 1
    left, right = pairs.size - i, others.size - j
    merged[at : at + left] = pairs[i:]
    merged_counts[at : at + left] = counts[i:]
    at += left
    merged[at : at + right] = others[j:]
    merged_counts[at : at + right] = other_counts[j:]
    at += right
    return merged[:at], merged_counts[:at]
