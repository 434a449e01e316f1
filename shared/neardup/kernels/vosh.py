"""VOSH and the heap M of Sood & Loguinov 2011 §5-6: the likeliest sets of flipped header bits, in order.

Bits are ranked by how easily they flip; a set is its ranks in rising order. From p(u, S), equation 6, the bits that do
not flip cancel, and what orders the sets is the sum of each flipped bit's cost, -log(p / (1 - p)), in whole steps. A
set travels as one word, so that comparing words compares costs:

    16 bits cost | 3 bits size | 45 unused or ranks, 6 bits each, the first rank highest
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

U = np.uint64
COST_SHIFT = U(48)
SIZE_SHIFT = U(45)
MOST_COST = U(0xFFFF)
ROW = 64
LARGEST = np.int32(0x7FFFFFFF)
CANDIDATE_BITS = 7
MOST_CANDIDATES = 1 << CANDIDATE_BITS


@njit(nogil=True, cache=True)
def count_smaller(numbers: NDArray[np.int32], count: int, ranks: NDArray[np.int32]) -> None:
    """ranks[i] is how many of the numbers are smaller than numbers[i], for the first `count`.

    Up to the next multiple of ROW the numbers are LARGEST. Rows of fixed length compile to a few vector instructions;
    any sort would mispredict its branches.
    """
    if count <= ROW // 2:
        for i in range(count):
            number = numbers[U(i)]
            smaller = np.int32(0)
            for j in range(ROW // 2):
                smaller += np.int32(numbers[U(j)] < number)
            ranks[U(i)] = smaller
        return
    ranks[:count] = np.int32(0)
    for first in range(0, count, ROW):
        for i in range(count):
            number = numbers[U(i)]
            smaller = np.int32(0)
            for j in range(ROW):
                smaller += np.int32(numbers[U(first + j)] < number)
            ranks[U(i)] += smaller


@njit(nogil=True, cache=True)
def rank_bits(
    costs: NDArray[np.uint16],
    bits: int,
    numbers: NDArray[np.int32],
    ranks: NDArray[np.int32],
    order: NDArray[np.int64],
    ranked: NDArray[np.uint64],
) -> None:
    """order[r] is the r-th easiest of the first `bits` bits, ranked[r] its cost; ties go by position.

    `numbers` and `ranks` are scratch of ROW words or more.
    """
    numbers[:ROW] = LARGEST
    for i in range(bits):
        # Cost and position in one number make all of them different.
        numbers[U(i)] = (np.int32(costs[U(i)]) << np.int32(6)) | np.int32(i)
    count_smaller(numbers, bits, ranks)
    for i in range(bits):
        rank = U(ranks[U(i)])
        order[rank] = i
        ranked[rank] = costs[U(i)]


@njit(nogil=True, cache=True)
def _rank_of(word: np.uint64, place: np.int64) -> np.int64:
    return np.int64((word >> U(6 * (6 - place))) & U(63))


@njit(nogil=True, cache=True)
def _raised(word: np.uint64, place: np.int64, ranked: NDArray[np.uint64]) -> np.uint64:
    """The set with the rank at `place` one higher."""
    rank = _rank_of(word, place)
    cost = min((word >> COST_SHIFT) - ranked[rank] + ranked[rank + 1], MOST_COST)
    set_and_size = (word & ((U(1) << COST_SHIFT) - U(1))) + (U(1) << U(6 * (6 - place)))
    raised: np.uint64 = (cost << COST_SHIFT) | set_and_size
    return raised


@njit(nogil=True, cache=True)
def _sift_up(heap: NDArray[np.uint64], at: int) -> None:
    word = heap[at]
    while at > 0 and heap[(at - 1) >> 1] > word:
        heap[at] = heap[(at - 1) >> 1]
        at = (at - 1) >> 1
    heap[at] = word


@njit(nogil=True, cache=True)
def _sift_down(heap: NDArray[np.uint64], size: int) -> None:
    word = heap[0]
    at = 0
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        child += child + 1 < size and heap[child + 1] < heap[child]
        if heap[child] >= word:
            break
        heap[at] = heap[child]
        at = child
    heap[at] = word


@njit(nogil=True, cache=True)
def likeliest_sets(
    ranked: NDArray[np.uint64], bits: int, most: int, wanted: int, heap: NDArray[np.uint64], out: NDArray[np.uint64]
) -> int:
    """Write the `wanted` cheapest non-empty sets of at most `most` of `bits` ranks; return how many there were.

    Each set once, cost never falling. `heap` needs room for wanted + most words.
    """
    size = 0
    word = U(0)
    cost = U(0)
    for each in range(min(most, bits)):
        # The root of the tree of sets with each + 1 bits: the easiest ones.
        cost = min(cost + ranked[each], MOST_COST)
        word |= U(each) << U(6 * (6 - each))
        heap[size] = (cost << COST_SHIFT) | (U(each + 1) << SIZE_SHIFT) | word
        _sift_up(heap, size)
        size += 1
    count = 0
    while count < wanted and size > 0:
        word = heap[0]
        out[count] = word
        count += 1
        last = np.int64((word >> SIZE_SHIFT) & U(7)) - 1
        # The left child takes its parent's place in the heap: one sift instead of two.
        if _rank_of(word, last) + 1 < bits:
            heap[0] = _raised(word, last, ranked)
        else:
            size -= 1
            heap[0] = heap[size]
        _sift_down(heap, size)
        # The right child raises the rank before the first gap from the right, if that gap is exactly 2: any other rule
        # would reach some set twice. (Algorithm 2 of the paper lacks the break after the gap of 2; its text has it.)
        place = last
        while place > 0:
            place -= 1
            gap = _rank_of(word, place + 1) - _rank_of(word, place)
            if gap >= 2:
                if gap == 2:
                    heap[size] = _raised(word, place, ranked)
                    _sift_up(heap, size)
                    size += 1
                break
    return count


@njit(nogil=True, cache=True)
def order_candidates(
    ranked: NDArray[np.uint64],
    candidates: NDArray[np.uint8],
    numbers: NDArray[np.int32],
    ranks: NDArray[np.int32],
    chosen: NDArray[np.int64],
) -> None:
    """Write the numbers of all candidates to `chosen`, cheapest first; ties go by number.

    Candidate c is the set of ranks candidates[:, c], filled up with a rank that costs nothing. `numbers`, `ranks` and
    `chosen` have room for MOST_CANDIDATES.
    """
    count = candidates.shape[1]
    numbers[:] = LARGEST
    for c in range(count):
        numbers[U(c)] = c
    for place in range(candidates.shape[0]):
        for c in range(count):
            cost = ranked[U(candidates[U(place), U(c)])]
            numbers[U(c)] += np.int32(cost) << np.int32(CANDIDATE_BITS)
    count_smaller(numbers, count, ranks)
    for c in range(count):
        chosen[U(ranks[U(c)])] = c


@njit(nogil=True, cache=True)
def flip_lookups(
    fingerprints: NDArray[np.uint64],
    levels: NDArray[np.uint8],
    costs_of_levels: NDArray[np.uint16],
    header: int,
    most: int,
    wanted: int,
    candidates: NDArray[np.uint8],
    own: int,
    keys: NDArray[np.uint64],
    limits: NDArray[np.uint64],
) -> None:
    """Row i: `own` times (0 or 1) fingerprint i itself, then its `wanted` likeliest flips, each with the distance left.

    Where there are fewer flips than wanted, the row repeats the fingerprint itself. The columns of `candidates` are all
    sets that can be among the likeliest, filled up with the rank `header`; when there are none, a heap finds them.
    """
    order = np.empty(header, np.int64)
    ranked = np.zeros(header + 1, np.uint64)
    flip_of_rank = np.zeros(header + 1, np.uint64)
    costs = np.empty(header, np.uint16)
    numbers = np.empty(MOST_CANDIDATES, np.int32)
    ranks = np.empty(MOST_CANDIDATES, np.int32)
    chosen = np.empty(MOST_CANDIDATES, np.int64)
    heap = np.empty(wanted + most + 2, np.uint64)
    sets = np.empty(wanted, np.uint64)
    few = candidates.shape[1] > 0
    rests = np.full(candidates.shape[1], most, np.uint64)
    for c in range(rests.size):
        for place in range(candidates.shape[0]):
            rests[c] -= U(candidates[place, c] < header)
    count = min(wanted, rests.size)
    for i in range(fingerprints.size):
        for bit in range(header):
            costs[U(bit)] = costs_of_levels[U(levels[U(i), U(bit)])]
        rank_bits(costs, header, numbers, ranks, order, ranked)
        for rank in range(header):
            flip_of_rank[U(rank)] = U(1) << U(63 - order[U(rank)])
        keys[i, :own] = fingerprints[i]
        limits[i, :own] = most
        if few:
            order_candidates(ranked, candidates, numbers, ranks, chosen)
            for j in range(count):
                candidate = U(chosen[U(j)])
                flips = U(0)
                for place in range(candidates.shape[0]):
                    flips |= flip_of_rank[U(candidates[U(place), candidate])]
                keys[U(i), U(j + own)] = fingerprints[i] ^ flips
                limits[U(i), U(j + own)] = rests[candidate]
        else:
            count = likeliest_sets(ranked, header, most, wanted, heap, sets)
            for j in range(count):
                word = sets[j]
                size = np.int64((word >> SIZE_SHIFT) & U(7))
                flips = U(0)
                for place in range(size):
                    flips |= flip_of_rank[_rank_of(word, np.int64(place))]
                keys[i, j + own] = fingerprints[i] ^ flips
                limits[i, j + own] = most - size
        for j in range(count, wanted):
            keys[i, j + own] = fingerprints[i]
            limits[i, j + own] = most


@njit(nogil=True, cache=True)
def attempts_needed(
    differences: NDArray[np.uint64],
    levels: NDArray[np.uint8],
    costs_of_levels: NDArray[np.uint16],
    header: int,
    most: int,
    wanted: int,
    attempts: NDArray[np.int64],
) -> None:
    """At which flip each difference in the header is met: 0 without one, wanted + 1 when not among the `wanted`."""
    keys = np.empty((1, wanted + 1), np.uint64)
    limits = np.empty((1, wanted + 1), np.uint64)
    nothing = np.zeros(1, np.uint64)
    no_candidates = np.empty((1, 0), np.uint8)
    for i in range(differences.size):
        sought = (differences[i] >> U(64 - header)) << U(64 - header)
        attempts[i] = wanted + 1
        flip_lookups(nothing, levels[i : i + 1], costs_of_levels, header, most, wanted, no_candidates, 1, keys, limits)
        for j in range(wanted + 1):
            if keys[0, j] == sought:
                attempts[i] = j
                break
