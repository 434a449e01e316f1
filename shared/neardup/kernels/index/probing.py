"""Sorted keys with a directory on their leading bits, and many probes at once.

A probe is three dependent steps: read the directory, read the table, scan. Done query by query, each waits for
memory twice. Here they are a pipeline: while one query scans, the table of a later one and the directory of a still
later one are on their way. (Three separate loops over blocks of queries are the simple form of this. They ask for
memory in bursts, which holds them up, and take half as long again.)

A scan that ends where its range ends mispredicts nearly every time, which costs more than the scan. So all scans are
the same: the whole cache line of the range's first key and that of its last, mostly one and the same. Memory brings
whole lines anyway, and a line is a vector: eight distances take as many instructions as one. They ask only whether
any key is near enough: whether its leading bits match, which keys beside the range do not, is left to the few that go
on. A line that has a key in it can be read whole, also where the keys begin or end within it: memory is there by
pages, and what stands beside the keys is compared and comes to nothing.

How many lookups a processor has under way depends on how few instructions each takes. So the loop has no branch for
its own beginning and end: the first lines are asked for before it, and behind the last query stands the last one again.

`mask` has the leading bits set that must match; `skip` is the number of leading bits that all keys of the slice share,
which the directory leaves out.
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
"""A range with more keys than this is searched by halving: clustered keys do not make a probe linear."""
IN_LINE = U(LINE - 1)


@njit(nogil=True, cache=True)
def extend_filter(
    keys: NDArray[np.uint64], start: int, stop: int, skip: int, bits: int, words: NDArray[np.uint64], filled: int
) -> int:
    """Set the bit of the leading bits of each of keys[start:stop].

    `filled` words are in use, 0 before the first key, the others have anything in them; the new number is returned.
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
    """The part of keys[low:high] that agrees with the query in `mask`, its leading bits."""
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
    """Report only the nearest matches, as many as the cap. Rare, so the range is read once per distance."""
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
    # By a mask, as a branch would often be mispredicted.
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

    The mask must have all bits of the directory. The keys are aligned as words are. Returns the next query, the number
    of pairs in the buffers, the number of queries with more matches than the cap, and the number of keys in their
    ranges of the directory. The next query is before the end if the buffers have no room for as many pairs as the cap:
    the caller enlarges them and calls again.
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
            # From here on they will be scanned again.
            scanned -= _in_ranges(words, queries, step, step + in_flight + 1, left, drop)
            return step, found, capped, np.int64(scanned)
        found, more = scan_range(keys, low, high, group, step, step, into, found)
        capped += more
    if total > start:
        # The last query, which stood behind itself.
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
    # Block by block, so that what has passed is still in the cache.
    for first in range(start, queries.size, BLOCK):
        count = U(0)
        for i in range(first, min(queries.size, first + BLOCK)):
            prefetch(bitmap, ((queries[min(U(i + 4 * AHEAD), last)] << left) >> right) >> U(6))
            bucket = (queries[U(i)] << left) >> right
            # Written in any case, kept when it passes; only the number, as stores that wait for a bit hold up the rest.
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
