"""VOSH and the heap M of Sood & Loguinov 2011 §5-6: the likeliest sets of flipped header bits, in order.

Bits are ranked by their probability of flipping, the most probable first, and a set is represented by its ranks in
rising order. In p(u, S), equation 6, the bits that do not flip cancel, so the order of the sets is that of their costs.
The cost of a set is the sum of -log(p / (1 - p)) over its bits, in integer steps. A set is encoded in one word, so that
comparing words compares costs:

    16 bits cost | 3 bits size | 45 bits of ranks, 6 bits each, the first rank in the highest bits, the rest unused
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

U = np.uint64
COST_SHIFT = U(48)
SIZE_SHIFT = U(45)
MOST_COST = U(0xFFFF)


@njit(nogil=True, cache=True)
def rank_of(word: np.uint64, place: np.int64) -> np.int64:
    """Return the rank at position `place` of a set, counted from 0."""
    return np.int64((word >> U(6 * (6 - place))) & U(63))


@njit(nogil=True, cache=True)
def _raised(word: np.uint64, place: np.int64, ranked: NDArray[np.uint64]) -> np.uint64:
    """Return the set with the rank at `place` raised by one."""
    rank = rank_of(word, place)
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
    """Write the `wanted` cheapest non-empty sets of at most `most` of `bits` ranks to `out`; return their number.

    Each set is written once, in rising order of cost. `heap` must have room for wanted + most words.
    """
    size = 0
    word = U(0)
    cost = U(0)
    for each in range(min(most, bits)):
        # The root of the tree of sets with each + 1 bits is the set of the likeliest bits.
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
        # The left child replaces its parent in the heap, which takes one sift instead of two.
        if rank_of(word, last) + 1 < bits:
            heap[0] = _raised(word, last, ranked)
        else:
            size -= 1
            heap[0] = heap[size]
        _sift_down(heap, size)
        # The right child raises the rank before the first gap from the right, if that gap is exactly 2. Any other rule
        # would generate some sets twice. (Algorithm 2 of the paper lacks the break after that gap; its text has it.)
        place = last
        while place > 0:
            place -= 1
            gap = rank_of(word, place + 1) - rank_of(word, place)
            if gap >= 2:
                if gap == 2:
                    heap[size] = _raised(word, place, ranked)
                    _sift_up(heap, size)
                    size += 1
                break
    return count
