"""Elias-Fano coding: sorted keys in about 2 + log2(range / n) bits each, which are searched without decoding.

A key, without the bits that all keys of the slice share, is cut into an upper part of about log2(n) bits and a lower
part. The lower parts are in one packed array. The upper parts are in a bitmap, which has for each value in rising order
a 1 per key with this upper part, followed by a 0. The keys with upper part j therefore begin after the j-th 0. The
positions of every SAMPLE-th value are stored.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from neardup.kernels.common.bits import popcount
from neardup.kernels.common.prefetching import prefetch
from neardup.kernels.index.arguments import Buffers, Queries
from neardup.kernels.index.probing import scan_range

U = np.uint64
SAMPLE = 256
SAMPLE_BITS = U(8)
AHEAD = 16
RING = 32
ALL = U(0xFFFFFFFFFFFFFFFF)


class EncodedKeys(NamedTuple):
    """A sorted run in encoded form. Its keys share the first `skip` bits, which `prefix` holds."""

    lower: NDArray[np.uint64]
    upper: NDArray[np.uint64]
    samples: NDArray[np.uint32]
    prefix: np.uint64
    skip: int
    upper_bits: int


@njit(nogil=True, cache=True)
def put_bits(words: NDArray[np.uint64], at: np.uint64, value: np.uint64, width: np.uint64) -> None:
    """Write `value`, which has `width` bits (0 to 64), at bit `at` of the words. These bits must be zero before."""
    if width == U(0):
        return
    word = at >> U(6)
    shift = at & U(63)
    words[word] |= value << shift
    if shift + width > U(64):
        words[word + U(1)] |= value >> (U(64) - shift)


@njit(nogil=True, cache=True)
def get_bits(words: NDArray[np.uint64], at: np.uint64, width: np.uint64) -> np.uint64:
    """Return the value that `put_bits` wrote. There must be one more word after the value's last one."""
    if width == U(0):
        return U(0)
    word = at >> U(6)
    shift = at & U(63)
    # Two shifts, because a shift by 64 is undefined. No branch, because half of all reads cross a word boundary.
    value: np.uint64 = (words[word] >> shift) | ((words[word + U(1)] << U(1)) << (U(63) - shift))
    value &= ALL >> (U(64) - width)
    return value


@njit(nogil=True, cache=True)
def encode(
    keys: NDArray[np.uint64],
    start: int,
    stop: int,
    skip: int,
    upper_bits: int,
    lower: NDArray[np.uint64],
    upper: NDArray[np.uint64],
    samples: NDArray[np.uint32],
) -> None:
    """Encode keys[start:stop]. Successive calls must cover all keys in order. The arrays need not be initialized.

    `samples` contains the positions at which upper values 0, SAMPLE, 2 SAMPLE and so on begin.
    """
    left = U(skip)
    right = U(64 - upper_bits)
    width = U(64 - skip - upper_bits)
    # Words are cleared when they are reached, so that no step has to clear a whole array.
    cleared = 0
    sampled = 0
    if start > 0:
        value = (keys[start - 1] << left) >> right
        cleared = int((value + U(start - 1)) >> U(6)) + 1
        sampled = int(value >> SAMPLE_BITS) + 1
    if start < stop:
        last = (((keys[stop - 1] << left) >> right) + U(stop - 1)) >> U(6)
        upper[cleared : int(last) + 1] = U(0)
        cleared = int(last) + 1
    lower[(start * int(width) + 63) >> 6 : (stop * int(width) + 63) >> 6] = U(0)
    for i in range(start, stop):
        value = (keys[i] << left) >> right
        while U(sampled) <= value >> SAMPLE_BITS:
            samples[sampled] = i + sampled * SAMPLE
            sampled += 1
        place = value + U(i)
        upper[place >> U(6)] |= U(1) << (place & U(63))
        if width:
            put_bits(lower, U(i) * width, keys[i] & (ALL >> (U(64) - width)), width)
    if stop == keys.size:
        lower[(stop * int(width) + 63) >> 6 :] = U(0)
        upper[cleared:] = U(0)
        for each in range(sampled, samples.size):
            samples[each] = stop + each * SAMPLE


@njit(nogil=True, cache=True)
def begin_of(upper: NDArray[np.uint64], samples: NDArray[np.uint32], value: np.uint64) -> np.uint64:
    """Return the bit of `upper` after the value-th 0, at which the keys with that upper part begin."""
    place = U(samples[value >> SAMPLE_BITS])
    missing = value & U(SAMPLE - 1)
    word = place >> U(6)
    zeros = ~upper[word] & (ALL << (place & U(63)))
    if missing == U(0):
        return place
    count = popcount(zeros)
    while count < missing:
        missing -= count
        word += U(1)
        zeros = ~upper[word]
        count = popcount(zeros)
    # Find the missing-th set bit of `zeros` by bisection.
    at = U(0)
    for half in (U(32), U(16), U(8), U(4), U(2), U(1)):
        part = zeros & ((U(1) << half) - U(1))
        count = popcount(part)
        if count < missing:
            missing -= count
            zeros >>= half
            at += half
        else:
            zeros = part
    return (word << U(6)) + at + U(1)


@njit(nogil=True, cache=True)
def decode(encoded: EncodedKeys, start: int, stop: int, place: int, out: NDArray[np.uint64]) -> int:
    """Decode keys[start:stop] into `out`.

    `place` is the bit of the upper parts from which to continue: 0 for the first key, and otherwise the return value of
    the previous call.
    """
    lower, upper, prefix = encoded.lower, encoded.upper, encoded.prefix
    width = U(64 - encoded.skip - encoded.upper_bits)
    at = U(place)
    for i in range(start, stop):
        while (upper[at >> U(6)] >> (at & U(63))) & U(1) == U(0):
            at += U(1)
        high = at - U(i)
        out[i - start] = prefix | (high << width) | get_bits(lower, U(i) * width, width)
        at += U(1)
    return int(at)


@njit(nogil=True, cache=True)
def probe_elias_fano(
    encoded: EncodedKeys,
    lookups: Queries,
    leading: int,
    start: int,
    buffers: Buffers,
    found: int,
) -> tuple[int, int, int, np.int64]:
    """Do as `probe_sorted` on the encoded form: find the range of upper parts and decode only its keys.

    `leading` is the number of leading bits in the queries' mask.
    """
    lower, upper, samples, prefix, skip, upper_bits = encoded
    queries, limits, mask, cap = lookups
    group = Queries(queries, limits, mask, cap)
    found_query, found_key = buffers
    into = Buffers(found_query, found_key)
    left = U(skip)
    right = U(64 - upper_bits)
    width = U(64 - skip - upper_bits)
    spread = U(max(0, skip + upper_bits - leading))
    places = np.empty(RING, np.uint64)
    firsts = np.empty(RING, np.uint64)
    keys = np.empty(64, np.uint64)
    total = queries.size
    capped = 0
    scanned = U(0)
    for step in range(start - 2 * AHEAD, total):
        ahead = step + 2 * AHEAD
        if ahead < total:
            value = (((queries[ahead] << left) >> right) >> spread) << spread
            prefetch(samples, value >> SAMPLE_BITS)
            # The bitmap has two bits per key, so the cache line of a value can be predicted well enough to prefetch it.
            prefetch(upper, (value << U(1)) >> U(6))
        ahead = step + AHEAD
        if start <= ahead < total:
            value = (((queries[ahead] << left) >> right) >> spread) << spread
            place = begin_of(upper, samples, value)
            places[ahead & (RING - 1)] = place
            firsts[ahead & (RING - 1)] = value
            prefetch(lower, ((place - value) * width) >> U(6))
        if step < start:
            continue
        at = places[step & (RING - 1)]
        value = firsts[step & (RING - 1)]
        past = value + (U(1) << spread)
        # In most cases there is no key with this upper part.
        if spread == U(0) and (upper[at >> U(6)] >> (at & U(63))) & U(1) == U(0):
            continue
        if found + cap + 1 > found_key.size:
            return step, found, capped, np.int64(scanned)
        count = U(0)
        while value < past:
            if (upper[at >> U(6)] >> (at & U(63))) & U(1) == U(0):
                value += U(1)
            else:
                if count == U(keys.size):
                    keys = np.append(keys, np.empty_like(keys))
                keys[count] = prefix | (value << width) | get_bits(lower, (at - value) * width, width)
                count += U(1)
            at += U(1)
        found, more = scan_range(keys, U(0), count, group, step, step, into, found)
        capped += more
        scanned += count
    return total, found, capped, np.int64(scanned)
