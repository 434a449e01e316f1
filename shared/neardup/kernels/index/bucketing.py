"""Buckets: pairs of a key and a fingerprint, the newest in a hash table and all others in sorted runs.

Keys are mixed by a one-to-one function (`mix`), so that their leading bits are evenly distributed over a run's
directory, whatever the original keys are.

The hash table is designed for probes that alternate with inserts. `slots` maps a key to its latest entry, or to EMPTY.
`previous` maps an entry to the previous entry with the same key, and `sizes` has the number of entries up to it.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from neardup.kernels.common.hashing import P2, P3, avalanche
from neardup.kernels.common.prefetching import prefetch
from neardup.kernels.index.arguments import Buffers
from neardup.kernels.index.locating import VALUE_BITS, bucket_of, first_at_least, range_of

U = np.uint64
AHEAD = 16
RING = 32
EMPTY = -1
# Multiplicative inverses of P2 and P3 modulo 2^64.
P2_INVERSE = U(pow(int(P2), -1, 1 << 64))
P3_INVERSE = U(pow(int(P3), -1, 1 << 64))
WIDE = U(16)
"""Ranges of more pairs than this are searched by bisection, so that common keys do not make a probe linear."""

# Marks of a query, as bits, which are set before the hash table is probed.
OWN = 1
"""Mark of a query whose own fingerprint is in its bucket."""
OWN_NOW = 2
"""Mark of a query whose own fingerprint was inserted into its bucket in the current epoch."""
COMMON = 4
"""Mark of a query whose bucket has reached the limit."""
ASKS = 8
"""Mark of a query that must not be inserted."""


class SortedPairs(NamedTuple):
    """A sorted run of pairs, with a directory on the leading `bits` bits of the keys."""

    keys: NDArray[np.uint64]
    fingerprints: NDArray[np.uint64]
    directory: NDArray[np.uint64]
    bits: int


class PairBatch(NamedTuple):
    """The pairs of a batch, with marks for the contents of the runs."""

    keys: NDArray[np.uint64]
    fingerprints: NDArray[np.uint64]
    marks: NDArray[np.uint8]
    """The bits `OWN`, `OWN_NOW`, `COMMON` and `ASKS` of each pair."""
    common: int
    """Number of fingerprints at which a bucket is common. Common buckets are ignored."""


class RecentTable(NamedTuple):
    """The arrays of the hash table."""

    slots: NDArray[np.int32]
    keys: NDArray[np.uint64]
    fingerprints: NDArray[np.uint64]
    previous: NDArray[np.int32]
    sizes: NDArray[np.int32]


@njit(nogil=True, cache=True)
def mix(keys: NDArray[np.uint64], out: NDArray[np.uint64]) -> None:
    """Set out[i] to a one-to-one function of keys[i]."""
    for i in range(keys.size):
        out[i] = avalanche(keys[i])


@njit(nogil=True, cache=True)
def unmix(mixed: NDArray[np.uint64], out: NDArray[np.uint64]) -> None:
    """Invert `mix`."""
    for i in range(mixed.size):
        h = mixed[i]
        h = (h ^ (h >> np.uint64(32))) * P3_INVERSE
        h = (h ^ (h >> np.uint64(29)) ^ (h >> np.uint64(58))) * P2_INVERSE
        out[i] = h ^ (h >> np.uint64(33))


@njit(nogil=True, cache=True)
def probe_buckets(
    run: SortedPairs,
    batch: PairBatch,
    start: int,
    own_mark: int,
    buffers: Buffers,
    found: int,
) -> tuple[int, int]:
    """Report the fingerprints that a run holds under the key of each pair of the batch, from `start` on.

    The pair's own fingerprint is not reported but sets `own_mark` in its marks. A bucket that has reached the limit is
    not reported but sets COMMON. Returns the next pair and the number of pairs in the buffers. The next pair is before
    the end if the buffers are full.
    """
    keys, fingerprints, directory, bits = run
    queries, own, marks, common = batch
    found_query, found_fingerprint = buffers
    drop = U(63 - bits)
    total = queries.size
    lows = np.empty(RING, np.uint64)
    highs = np.empty(RING, np.uint64)
    # The pipeline is explained in `probing`.
    for step in range(start - 2 * AHEAD, total):
        ahead = step + 2 * AHEAD
        if ahead < total:
            prefetch(directory, bucket_of(queries[U(ahead)], U(0), drop) >> VALUE_BITS)
        ahead = step + AHEAD
        if start <= ahead < total:
            low, high = range_of(directory, bucket_of(queries[U(ahead)], U(0), drop))
            lows[U(ahead & (RING - 1))] = low
            highs[U(ahead & (RING - 1))] = high
            prefetch(keys, low)
        if step < start:
            continue
        low = lows[U(step & (RING - 1))]
        high = highs[U(step & (RING - 1))]
        query = queries[U(step)]
        if high - low > WIDE:
            low = first_at_least(keys, low, high, query)
        while low < high and keys[low] < query:
            low += U(1)
        if low == high or keys[low] != query:
            continue
        if found + common > found_query.size:
            return step, found
        if low + U(common - 1) < high and keys[low + U(common - 1)] == query:
            marks[step] |= COMMON
            continue
        while low < high and keys[low] == query:
            if fingerprints[low] == own[step]:
                marks[step] |= own_mark
            else:
                found_query[found] = step
                found_fingerprint[found] = fingerprints[low]
                found += 1
            low += U(1)
    return total, found


@njit(nogil=True, cache=True)
def slot_of(key: np.uint64, slots: NDArray[np.int32], recent_keys: NDArray[np.uint64]) -> np.uint64:
    """Return the slot of the key's last entry, or the empty slot for it. There are more slots than entries."""
    mask = U(slots.size - 1)
    slot = key & mask
    while slots[slot] != EMPTY and recent_keys[slots[slot]] != key:
        slot = (slot + U(1)) & mask
    return slot


@njit(nogil=True, cache=True)
def fill_recent(keys: NDArray[np.uint64], fingerprints: NDArray[np.uint64], table: RecentTable) -> None:
    """Insert distinct pairs into an empty hash table."""
    slots, recent_keys, recent_fingerprints, previous, sizes = table
    for i in range(keys.size):
        slot = slot_of(keys[i], slots, recent_keys)
        last = slots[slot]
        recent_keys[i] = keys[i]
        recent_fingerprints[i] = fingerprints[i]
        previous[i] = last
        sizes[i] = 1 if last == EMPTY else sizes[last] + 1
        slots[slot] = i


@njit(nogil=True, cache=True)
def _distinct(words: NDArray[np.uint64], start: int, stop: int) -> int:
    """Sort words[start:stop], remove repeats from it, and return the new stop."""
    rising = True
    for i in range(start + 1, stop):
        rising &= words[i - 1] < words[i]
    # This is nearly always the case: there is one match, or all matches are from one run.
    if rising:
        return stop
    words[start:stop].sort()
    end = start + 1
    for i in range(start + 1, stop):
        if words[i] != words[end - 1]:
            words[end] = words[i]
            end += 1
    return end


@njit(nogil=True, cache=True)
def probe_and_insert_recent(
    batch: PairBatch,
    in_runs: tuple[NDArray[np.int64], NDArray[np.uint64]],
    table: RecentTable,
    start: int,
    one_epoch: bool,
    recent: int,
    buffers: Buffers,
    found: int,
) -> tuple[int, int, int, int]:
    """For each pair from `start` on, report all fingerprints in its bucket, then insert the pair into the hash table.

    The bucket consists of the `recent` pairs in the hash table and of what the runs hold: `in_runs` is (ends, others),
    with others[ends[i] : ends[i + 1]] for pair i. `one_epoch` asserts that no pair is in more than one of them.
    Returns the next pair, the number of pairs in the buffers, the number of pairs in the hash table, and the number of
    common buckets. The next pair is before the end if the buffers are full. The hash table must have room for the whole
    batch.
    """
    keys, fingerprints, marks, common = batch
    ends, others = in_runs
    slots, recent_keys, recent_fingerprints, previous, sizes = table
    found_query, found_fingerprint = buffers
    ignored = 0
    for i in range(start, keys.size):
        slot = slot_of(keys[i], slots, recent_keys)
        entry = slots[slot]
        held = ends[i + 1] - ends[i]
        in_table = np.int64(0) if entry == EMPTY else np.int64(sizes[entry])
        mark = marks[i]
        own_in_runs = mark & (OWN | OWN_NOW) != 0
        if mark & COMMON or in_table >= common or (one_epoch and held + in_table + own_in_runs >= common):
            ignored += 1
            continue
        if found + held + in_table > found_query.size:
            return i, found, recent, ignored
        end = found
        for place in range(ends[i], ends[i + 1]):
            found_fingerprint[end] = others[place]
            end += 1
        own = fingerprints[i]
        while entry != EMPTY:
            if recent_fingerprints[entry] == own:
                mark |= OWN_NOW
            else:
                found_fingerprint[end] = recent_fingerprints[entry]
                end += 1
            entry = previous[entry]
        end = _distinct(found_fingerprint, found, end)
        if end - found + (mark & (OWN | OWN_NOW) != 0) >= common:
            ignored += 1
            continue
        found_query[found:end] = i
        found = end
        if mark & (OWN_NOW | ASKS):
            continue
        entry = slots[slot]
        recent_keys[recent] = keys[i]
        recent_fingerprints[recent] = own
        previous[recent] = entry
        sizes[recent] = 1 if entry == EMPTY else sizes[entry] + 1
        slots[slot] = recent
        recent += 1
    return keys.size, found, recent, ignored


@njit(nogil=True, cache=True)
def order_within_keys(keys: NDArray[np.uint64], fingerprints: NDArray[np.uint64]) -> None:
    """Sort the fingerprints of each key. Equal keys must be adjacent."""
    first = 0
    for i in range(1, keys.size + 1):
        if i < keys.size and keys[i] == keys[first]:
            continue
        if i - first > 1:
            fingerprints[first:i].sort()
        first = i
