"""Postings, (key, row) in one word, and the pairs of rows that share keys (Broder 1997, "The clustering algorithm").

The leading 8 bits of a key say its partition; there a posting is the next 32 bits and the row. So 40 bits of a key are
kept, as many as Broder kept of a shingle: now and then two keys look alike, which a look at the documents corrects.
"""

# Integers are numpy's at run time and Python's in the signatures: numba needs the one, readers the other.
# mypy: disable-error-code="arg-type,assignment,return-value,no-any-return"

import numpy as np
from numba import njit
from numpy.typing import NDArray

PARTITIONS = 256
KEPT = np.uint64(0xFFFFFFFFFF000000)
"""The bits of a key that are kept."""
_PARTITION_AT = np.uint64(56)
_KEY = np.uint64(0xFFFFFFFF00000000)
_ROW = np.uint64(0xFFFFFFFF)


@njit(nogil=True, cache=True)
def count_partitions(keys: NDArray[np.uint64]) -> NDArray[np.int64]:
    """How many keys each partition has."""
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
    """Put the postings of rows with so many keys each into their partitions; `places` says where the next one goes."""
    at = 0
    for i in range(rows.size):
        row = np.uint64(rows[i])
        for _ in range(sizes[i]):
            key = keys[at]
            partition = key >> _PARTITION_AT
            out[places[partition]] = (key << np.uint64(8)) & _KEY | row
            places[partition] += 1
            at += 1


@njit(nogil=True, cache=True)
def find(
    words: NDArray[np.uint64], starts: NDArray[np.int64], keys: NDArray[np.uint64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(place in keys, row) for every posting of a key."""
    first = np.empty(keys.size, np.int64)
    counts = np.zeros(keys.size, np.int64)
    for i in range(keys.size):
        partition = np.int64(keys[i] >> _PARTITION_AT)
        wanted = (keys[i] << np.uint64(8)) & _KEY
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
    """How rare a key with so many rows is, the rarest 1: the bits that the number takes."""
    bits = 0
    while size:
        size >>= 1
        bits += 1
    return bits


@njit(nogil=True, cache=True)
def _rows_of_key(
    words: NDArray[np.uint64], start: int, reach: NDArray[np.uint8], rows: NDArray[np.int64]
) -> tuple[int, int]:
    """(where the next key starts, how many rows with a reach it has); as many of them as there is room for."""
    key = words[start] & _KEY
    end = start
    count = 0
    last = np.int64(-1)
    while end < words.size and words[end] & _KEY == key:
        row = np.int64(words[end] & _ROW)
        # The same row twice: two of its keys look alike.
        if reach[row] and row != last:
            if count < rows.size:
                rows[count] = row
            count += 1
        last = row
        end += 1
    return end, count


@njit(nogil=True, cache=True)
def count_rarities(
    words: NDArray[np.uint64], reach: NDArray[np.uint8], common: int, counts: NDArray[np.uint16]
) -> None:
    """Add to `counts[row, rarity]` the keys of each row with a reach that are not common, in one partition."""
    rows = np.empty(common, np.int64)
    at = 0
    while at < words.size:
        at, count = _rows_of_key(words, at, reach, rows)
        if count <= common:
            how_rare = rarity(count)
            for i in range(count):
                counts[rows[i], how_rare] += np.uint16(1)


@njit(nogil=True, cache=True)
def reach_of(
    counts: NDArray[np.uint16], sizes: NDArray[np.int64], needed: NDArray[np.int64]
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The least rarity for each row beyond which it has fewer keys than it needs, and how many it has there.

    Common keys are beyond any, and if they are enough by themselves, no others are.
    """
    reach = np.empty(sizes.size, np.uint8)
    left = np.empty(sizes.size, np.int64)
    for row in range(sizes.size):
        beyond = sizes[row]
        for how_rare in range(counts.shape[1]):
            beyond -= np.int64(counts[row, how_rare])
            if beyond < needed[row] or how_rare == counts.shape[1] - 1:
                reach[row] = how_rare
                left[row] = beyond
                break
    return reach, left


@njit(nogil=True, cache=True)
def expand(
    words: NDArray[np.uint64],
    start: int,
    done: int,
    reach: NDArray[np.uint8],
    first_new: int,
    common: int,
    row_bits: int,
    out: NDArray[np.uint64],
    filled: int,
    ignored: NDArray[np.int64],
) -> tuple[int, int, int]:
    """Write the pairs of rows of each key in a partition, a << row_bits | b with b from `first_new` on, until full.

    Begins at the key at `start`, of whose rows `done` have been paired with the ones before them, and returns where to
    go on, (start, done), and how much of `out` is filled. It has room for `common` pairs at least. A row takes part in
    keys of at most its reach in rarity. A key of more rows than `common` is left out, and counted with its rows in
    `ignored`.
    """
    rows = np.empty(common, np.int64)
    shift = np.uint64(row_bits)
    while start < words.size:
        # Most keys have one row.
        if start + 1 == words.size or (words[start] ^ words[start + 1]) & _KEY:
            start += 1
            continue
        end, count = _rows_of_key(words, start, reach, rows)
        if count > common:
            ignored[0] += 1
            ignored[1] += count
        elif count > 1 and rows[count - 1] >= first_new:
            how_rare = rarity(count)
            taking_part = 0
            for i in range(count):
                rows[taking_part] = rows[i]
                taking_part += reach[rows[i]] >= how_rare
            for j in range(max(1, done), taking_part):
                if rows[j] < first_new:
                    continue
                if filled + j > out.size:
                    return start, j, filled
                b = np.uint64(rows[j])
                for i in range(j):
                    out[filled + i] = np.uint64(rows[i]) << shift | b
                filled += j
        start = end
        done = 0
    return start, 0, filled


@njit(nogil=True, cache=True)
def count_equal(pairs: NDArray[np.uint64], counts: NDArray[np.uint32]) -> int:
    """Of sorted pairs keep each once, with how often it stood there; return how many remain."""
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
    """Two sorted runs as one; the counts of a pair in both are added."""
    merged = np.empty(pairs.size + others.size, np.uint64)
    merged_counts = np.empty(merged.size, np.uint32)
    i = 0
    j = 0
    at = 0
    while i < pairs.size and j < others.size:
        x = pairs[i]
        y = others[j]
        # No branch: which one is next cannot be predicted.
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
