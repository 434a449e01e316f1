"""Batched probes of sorted keys with a directory on their leading bits.

A probe has three dependent steps: read the directory, read the keys, compare. If probes ran one after the other, each
would wait for memory twice. They run as a pipeline instead: while one query is compared, the keys of a later query and
the directory entry of a still later query are being prefetched. (A simpler form is three loops over blocks of queries.
They access memory in bursts, and take 1.5 times as long.)

A comparison that ends at the end of the range mispredicts a branch nearly every time, which takes longer than the
comparison. Therefore all comparisons are alike: they read the whole cache line of the first key of the range and that
of the last key, which are mostly the same line. Memory is read in lines anyway, and a line is a vector of eight keys,
whose distances take as many instructions as one distance. The vector comparison tests only whether any key is within
the limit. Keys outside the range may pass it; the few queries for which a key passes are compared again, key by key,
including the leading bits. A line may extend beyond the array of keys. That is safe, as memory is mapped by pages and
no line crosses a page, and words outside the array affect no result.

The fewer instructions a probe takes, the more probes a processor executes at once. The loop therefore has no branches
for its first and last iterations: the first lines are prefetched before the loop, and the last query is repeated past
the end.

`mask` has the leading bits set that must match. `skip` is the number of leading bits that all keys of the slice share,
and that the directory omits.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from neardup.kernels.common.bits import popcount
from neardup.kernels.common.no_refcounts import njit_no_refcounts
from neardup.kernels.common.prefetching import prefetch
from neardup.kernels.index.arguments import Buffers, Queries
from neardup.kernels.index.cache_lines import LINE, is_one_within
from neardup.kernels.index.locating import VALUE_BITS, Directory, bucket_of, first_at_least, range_of

U = np.uint64
AHEAD = 16
BLOCK = 4096
WIDE = U(64)
"""Ranges of more keys than this are searched by bisection, so that clustered keys do not make a probe linear."""
IN_LINE = U(LINE - 1)


@njit(nogil=True, cache=True)
def extend_filter(
    keys: NDArray[np.uint64], start: int, stop: int, skip: int, bits: int, words: NDArray[np.uint64], filled: int
) -> int:
    """Set the bit of the leading bits of each of keys[start:stop], and return the number of initialized words.

    `filled` is the return value of the previous call, and 0 in the first call. Other words need not be initialized.
    """
    left = U(skip)
    right = U(64 - bits)
    if start < stop:
        last = int(((keys[stop - 1] << left) >> right) >> U(6))
        words[filled : last + 1] = U(0)
        filled = last + 1
        for i in range(start, stop):
            bucket = (keys[i] << left) >> right
            words[bucket >> U(6)] |= U(1) << (bucket & U(63))
    if stop == keys.size:
        words[filled:] = U(0)
        filled = words.size
    return filled


@njit(nogil=True, cache=True)
def narrowed(
    keys: NDArray[np.uint64], low: np.uint64, high: np.uint64, query: np.uint64, mask: np.uint64
) -> tuple[np.uint64, np.uint64]:
    """Return the range within keys[low:high] of the keys that agree with the query in the leading bits of `mask`."""
    low = first_at_least(keys, low, high, query & mask)
    past = first_at_least(keys, low, high, query | ~mask)
    return low, past + U(past < high and keys[past] == query | ~mask)


@njit_no_refcounts
def _nearest(
    keys: NDArray[np.uint64],
    low: np.uint64,
    high: np.uint64,
    queries: Queries,
    place: int,
    number: int,
    buffers: Buffers,
    found: int,
) -> int:
    """Report only the nearest matches, up to the cap. Rare, so the range is simply read once per distance."""
    query = queries.keys[place]
    full = found + queries.cap
    for distance in range(np.int64(queries.limits[place]) + 1):
        for position in range(low, high):
            difference = keys[position] ^ query
            if popcount(difference) == U(distance) and difference & queries.mask == U(0):
                buffers.query[found] = number
                buffers.key[found] = keys[position]
                found += 1
                if found == full:
                    return found
    return found


@njit_no_refcounts
def scan_range(
    keys: NDArray[np.uint64],
    low: np.uint64,
    high: np.uint64,
    queries: Queries,
    place: int,
    number: int,
    buffers: Buffers,
    found: int,
) -> tuple[int, int]:
    """Report the matches of queries.keys[place] in keys[low:high], under `number`.

    A match agrees with the query in the mask and differs in at most its limit of bits. When there are more matches than
    the cap, the nearest are reported, and among equally near ones the smallest. Returns the new number of pairs in the
    buffers, and 1 if matches were left out.
    """
    query = queries.keys[place]
    limit = queries.limits[place]
    before = found
    for position in range(low, high):
        difference = keys[position] ^ query
        if popcount(difference) <= limit and difference & queries.mask == U(0):
            if found - before == queries.cap:
                return _nearest(keys, low, high, queries, place, number, buffers, before), 1
            buffers.query[found] = number
            buffers.key[found] = difference ^ query
            found += 1
    return found, 0


@njit_no_refcounts
def _line_of(at: np.uint64, offset: np.uint64) -> np.uint64:
    """Return the start of a key's cache line. If it is before the first key, the number wraps around."""
    return ((at + offset) & ~IN_LINE) - offset


@njit_no_refcounts
def _lines_of(low: np.uint64, high: np.uint64, offset: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Return the lines of the first and the last key of a range. An empty range gets the first line of all keys."""
    # Use a mask, as a branch would often be mispredicted.
    is_some = U(0) - U(low < high)
    return _line_of(low & is_some, offset), _line_of((high - U(1)) & is_some, offset)


@njit_no_refcounts
def _in_ranges(
    directory: NDArray[np.uint64],
    queries: NDArray[np.uint64],
    start: int,
    stop: int,
    left: np.uint64,
    drop: np.uint64,
) -> np.uint64:
    """Return the number of keys in the ranges of queries[start:stop]. Past the end, the last query is repeated."""
    total = U(0)
    for i in range(start, stop):
        low, high = range_of(directory, bucket_of(queries[min(U(i), U(queries.size - 1))], left, drop))
        total += high - low
    return total


@njit(nogil=True, cache=True)
def probe_sorted(
    keys: NDArray[np.uint64],
    directory: Directory,
    lookups: Queries,
    start: int,
    buffers: Buffers,
    found: int,
) -> tuple[int, int, int, np.int64]:
    """Report the matches of each query from `start` on, as `scan_range` does.

    The mask must include all bits of the directory. The keys must be aligned to 8 bytes. Returns the next query, the
    number of pairs in the buffers, the number of queries with more matches than the cap, and the number of keys in the
    queries' ranges of the directory. The next query is before the end if the buffers have no room for as many pairs as
    the cap: the caller must enlarge them and call again.
    """
    words, skip, bits = directory
    queries, limits, mask, cap = lookups
    group = Queries(queries, limits, mask, cap)
    found_query, found_key = buffers
    into = Buffers(found_query, found_key)
    left = U(skip)
    drop = U(63 - bits)
    offset = U(keys.ctypes.data >> 3) & IN_LINE
    firsts = np.zeros(AHEAD, np.uint64)
    lasts = np.zeros(AHEAD, np.uint64)
    total = queries.size if keys.size else start
    end = U(max(total, 1) - 1)
    room = found_key.size - cap - 1
    in_flight = min(AHEAD, total - start)
    capped = 0
    for i in range(start, min(start + 2 * AHEAD, total)):
        prefetch(words, bucket_of(queries[U(i)], left, drop) >> VALUE_BITS)
    for i in range(start, start + in_flight):
        low, high = range_of(words, bucket_of(queries[U(i)], left, drop))
        one, other = _lines_of(low, high, offset)
        firsts[U(i & (AHEAD - 1))] = one
        lasts[U(i & (AHEAD - 1))] = other
        prefetch(keys, one)
        prefetch(keys, other)
    scanned = _in_ranges(words, queries, start, start + in_flight, left, drop)
    for step in range(start, total):
        prefetch(words, bucket_of(queries[min(U(step + 2 * AHEAD), end)], left, drop) >> VALUE_BITS)
        low, high = range_of(words, bucket_of(queries[min(U(step + AHEAD), end)], left, drop))
        scanned += high - low
        later_one, later_other = _lines_of(low, high, offset)
        prefetch(keys, later_one)
        prefetch(keys, later_other)
        place = U(step & (AHEAD - 1))
        one, other = firsts[place], lasts[place]
        firsts[place], lasts[place] = later_one, later_other
        query = queries[U(step)]
        limit = limits[U(step)]
        if not is_one_within(keys, one, other, query, limit) and other - one <= U(LINE):
            continue
        low, high = range_of(words, bucket_of(query, left, drop))
        if high - low > WIDE:
            low, high = narrowed(keys, low, high, query, mask)
        if found > room:
            # The ranges from this query on are counted again in the next call.
            scanned -= _in_ranges(words, queries, step, step + in_flight + 1, left, drop)
            return step, found, capped, np.int64(scanned)
        found, more = scan_range(keys, low, high, group, step, step, into, found)
        capped += more
    if total > start:
        # Subtract the repetitions of the last query.
        scanned -= _in_ranges(words, queries, total, total + in_flight, left, drop)
    return queries.size, found, capped, np.int64(scanned)


@njit(nogil=True, cache=True)
def probe_filtered(
    bitmap: NDArray[np.uint64],
    bitmap_bits: int,
    keys: NDArray[np.uint64],
    directory: Directory,
    lookups: Queries,
    start: int,
    buffers: Buffers,
    found: int,
) -> tuple[int, int, int, np.int64]:
    """Do as `probe_sorted`, but only for queries whose leading bits are in the bitmap. The others have no match."""
    queries, limits, mask, cap = lookups
    found_query, _ = buffers
    left = U(directory[1])
    right = U(64 - bitmap_bits)
    numbers = np.empty(BLOCK, np.int64)
    passed = np.empty(BLOCK, np.uint64)
    passed_limits = np.empty(BLOCK, np.uint64)
    capped = 0
    scanned = np.int64(0)
    last = U(max(0, queries.size - 1))
    # Block by block, so that the queries that pass are still in the cache when they are probed.
    for first in range(start, queries.size, BLOCK):
        count = U(0)
        for i in range(first, min(queries.size, first + BLOCK)):
            prefetch(bitmap, ((queries[min(U(i + 4 * AHEAD), last)] << left) >> right) >> U(6))
            bucket = (queries[U(i)] << left) >> right
            # Always write the number, and keep it if the query passes. Only the number is written here: stores wait for
            # the bit of the bitmap, and further ones would delay the loop.
            numbers[count] = i
            count += (bitmap[bucket >> U(6)] >> (bucket & U(63))) & U(1)
        for i in range(count):
            passed[i] = queries[numbers[i]]
            passed_limits[i] = limits[numbers[i]]
        before = found
        some = Queries(passed[:count], passed_limits, mask, cap)
        reached, found, more, keys_scanned = probe_sorted(keys, directory, some, 0, buffers, found)
        for i in range(before, found):
            found_query[i] = numbers[found_query[i]]
        capped += more
        scanned += keys_scanned
        if U(reached) < count:
            return numbers[reached], found, capped, scanned
    return queries.size, found, capped, scanned
