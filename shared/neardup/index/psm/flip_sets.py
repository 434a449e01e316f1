"""The sets of header bits that can be among the likeliest flips for some costs of the bits.

Bits are ranked by cost. Compare the ranks of two sets, largest with largest: if a set has at least as many ranks as
another set, and each rank is at least the other's, then it costs at least as much. A set that is at least as expensive
as `wanted` other sets is never needed. Few sets remain: 46 sets of at most 3 bits for the 20 likeliest flips. Sorting
them by a network, for many fingerprints at once, is much faster than the heap of `kernels.index.vosh`, in which each
step depends on the previous step.
"""

from functools import cache

import numpy as np
from numpy.typing import NDArray

from neardup.kernels.index.flipping import MOST_CANDIDATES

_Set = tuple[int, ...]


@cache
def candidate_sets(bits: int, most: int, wanted: int) -> NDArray[np.uint8]:
    """Return one column per set of 1 to `most` of `bits` ranks, padded with `bits`.

    There are no columns if there are more than MOST_CANDIDATES sets.
    """
    accepted: list[_Set] = []
    # Sets are generated after all sets that are never more expensive: a step raises one rank by 1, or adds the rank 0.
    layer: set[_Set] = {(0,)} if most else set()
    while layer:
        kept = [each for each in sorted(layer) if sum(_never_costs_more(other, each) for other in accepted) < wanted]
        accepted += kept
        if len(accepted) > MOST_CANDIDATES:
            return np.empty((most, 0), np.uint8)
        layer = {later for each in kept for later in _next(each, bits, most)}
    filled_up = [each + (bits,) * (most - len(each)) for each in accepted]
    return np.array(filled_up, np.uint8).reshape(len(filled_up), most).T.copy()


def _next(ranks: _Set, bits: int, most: int) -> list[_Set]:
    """Return the sets that are more expensive by one step, with their ranks in rising order."""
    found = [(0, *ranks)] if ranks[0] > 0 and len(ranks) < most else []
    for place, rank in enumerate(ranks):
        limit = ranks[place + 1] if place + 1 < len(ranks) else bits
        if rank + 1 < limit:
            found.append((*ranks[:place], rank + 1, *ranks[place + 1 :]))
    return found


def _never_costs_more(ranks: _Set, other: _Set) -> bool:
    if len(ranks) > len(other):
        return False
    return all(mine <= its for mine, its in zip(reversed(ranks), reversed(other), strict=False))
