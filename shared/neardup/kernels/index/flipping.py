"""Computation of the likeliest flips of many fingerprints at once, as lookups.

A sort of the costs of one fingerprint would mispredict many branches. A sorting network makes the same comparisons for
any costs, so it sorts the costs of LANES fingerprints at once, with vector instructions and without a branch.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from neardup.kernels.index.vosh import SIZE_SHIFT, likeliest_sets, rank_of

U = np.uint64
LANES = 32
POSITION_BITS = np.int32(6)
POSITION = np.int32(63)
CANDIDATE_BITS = np.int32(7)
MOST_CANDIDATES = 1 << 7
CANDIDATE = np.int32(MOST_CANDIDATES - 1)


class FlipSearch(NamedTuple):
    """The constants of a probabilistic search."""

    costs: NDArray[np.uint16]
    """The cost of flipping a bit, by its level."""
    header: int
    """Number of leading bits that are flipped."""
    most: int
    """Maximum number of bits flipped at once."""
    candidates: NDArray[np.uint8]
    """One column per set of ranks that can be among the likeliest, padded with the rank `header`. If there are no
    columns, a heap finds the likeliest sets."""
    ranking: NDArray[np.uint8]
    """The sorting network for the bits of the header."""
    choosing: NDArray[np.uint8]
    """The sorting network for the candidates."""


@njit(nogil=True, cache=True)
def apply_network(network: NDArray[np.uint8], rows: NDArray[np.int32]) -> None:
    """Sort LANES columns of numbers: for each pair of rows in the network, move the smaller ones to the first row."""
    for step in range(network.shape[0]):
        first = U(network[U(step), U(0)])
        second = U(network[U(step), U(1)])
        for lane in range(LANES):
            one = rows[first, U(lane)]
            other = rows[second, U(lane)]
            rows[first, U(lane)] = min(one, other)
            rows[second, U(lane)] = max(one, other)


@njit(nogil=True, cache=True)
def flip_lookups(
    fingerprints: NDArray[np.uint64],
    levels: NDArray[np.uint8],
    numbers: NDArray[np.int64],
    search: FlipSearch,
    own: int,
    keys: NDArray[np.uint64],
    limits: NDArray[np.uint64],
) -> None:
    """Write the lookups of fingerprint numbers[i] to row i of `keys`, and the distances left to row i of `limits`.

    A row holds `own` times (0 or 1) the fingerprint itself, then its flips, likeliest first. If there are fewer flips
    than the row has room for, the fingerprint is repeated.
    """
    costs_of_levels, header, most, candidates, ranking, choosing = search
    room = keys.shape[1] - own
    few = candidates.shape[1]
    sorted_bits = np.zeros((header, LANES), np.int32)
    ranked = np.empty((header, LANES), np.int32)
    flip_of_rank = np.empty((header, LANES), np.uint64)
    sums = np.empty((few, LANES), np.int32)
    flips = np.empty((few, LANES), np.uint64)
    sizes = np.zeros(few, np.int64)
    for c in range(few):
        for place in range(most):
            sizes[c] += candidates[place, c] < header
    costs = np.empty(header, np.uint64)
    heap = np.empty(0 if few else room + most + 2, np.uint64)
    sets = np.empty(0 if few else room, np.uint64)
    for first in range(0, numbers.size, LANES):
        lanes = min(LANES, numbers.size - first)
        for lane in range(lanes):
            number = U(numbers[U(first + lane)])
            for bit in range(header):
                # The number includes the position, so all numbers of a fingerprint are different.
                cost = np.int32(costs_of_levels[U(levels[number, U(bit)])])
                sorted_bits[U(bit), U(lane)] = (cost << POSITION_BITS) | np.int32(bit)
        apply_network(ranking, sorted_bits)
        for rank in range(header):
            for lane in range(LANES):
                cost_and_bit = sorted_bits[U(rank), U(lane)]
                ranked[U(rank), U(lane)] = cost_and_bit >> POSITION_BITS
                flip_of_rank[U(rank), U(lane)] = U(1) << U(np.int32(63) - (cost_and_bit & POSITION))
        for c in range(few):
            flipped_rank = U(candidates[U(0), U(c)])
            for lane in range(LANES):
                sums[U(c), U(lane)] = (ranked[flipped_rank, U(lane)] << CANDIDATE_BITS) | np.int32(c)
                flips[U(c), U(lane)] = flip_of_rank[flipped_rank, U(lane)]
            for place in range(1, sizes[c]):
                flipped_rank = U(candidates[U(place), U(c)])
                for lane in range(LANES):
                    sums[U(c), U(lane)] += ranked[flipped_rank, U(lane)] << CANDIDATE_BITS
                    flips[U(c), U(lane)] |= flip_of_rank[flipped_rank, U(lane)]
        apply_network(choosing, sums)
        for lane in range(lanes):
            row = U(first + lane)
            fingerprint = fingerprints[U(numbers[row])]
            keys[row, :own] = fingerprint
            limits[row, :own] = most
            if few:
                made = min(room, few)
                for j in range(made):
                    candidate = U(sums[U(j), U(lane)] & CANDIDATE)
                    keys[row, U(j + own)] = fingerprint ^ flips[candidate, U(lane)]
                    limits[row, U(j + own)] = U(most - sizes[candidate])
            else:
                for rank in range(header):
                    costs[rank] = ranked[rank, lane]
                made = likeliest_sets(costs, header, most, room, heap, sets)
                for j in range(made):
                    size = np.int64((sets[j] >> SIZE_SHIFT) & U(7))
                    flipped = U(0)
                    for place in range(size):
                        flipped |= flip_of_rank[rank_of(sets[j], np.int64(place)), lane]
                    keys[row, j + own] = fingerprint ^ flipped
                    limits[row, j + own] = most - size
            for j in range(made, room):
                keys[row, U(j + own)] = fingerprint
                limits[row, U(j + own)] = most


@njit(nogil=True, cache=True)
def attempts_needed(
    differences: NDArray[np.uint64],
    levels: NDArray[np.uint8],
    costs_of_levels: NDArray[np.uint16],
    header: int,
    most: int,
    wanted: int,
    ranking: NDArray[np.uint8],
    attempts: NDArray[np.int64],
) -> None:
    """Write the number of the flip that reaches each difference in the header to `attempts`.

    The number is 0 if no flip is needed, and wanted + 1 if none of the `wanted` flips reaches the difference.
    """
    keys = np.empty((LANES, wanted + 1), np.uint64)
    limits = np.empty((LANES, wanted + 1), np.uint64)
    nothing = np.zeros(differences.size, np.uint64)
    none = np.empty((0, 0), np.uint8)
    everyone = np.arange(differences.size)
    search = FlipSearch(costs_of_levels, header, most, none, ranking, none)
    for first in range(0, differences.size, LANES):
        numbers = everyone[first : first + LANES]
        flip_lookups(nothing, levels, numbers, search, 1, keys, limits)
        for row in range(numbers.size):
            number = numbers[row]
            sought = (differences[number] >> U(64 - header)) << U(64 - header)
            attempts[number] = wanted + 1
            for j in range(wanted + 1):
                if keys[row, j] == sought:
                    attempts[number] = j
                    break
