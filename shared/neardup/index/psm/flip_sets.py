"""Which sets of header bits can be among the likeliest flips at all, whatever the bits' costs are.

Bits are ranked by cost. A set whose ranks are all at least those of another one, largest with largest, and that has no
fewer of them, costs at least as much. So a set with `wanted` such others before it is never needed. What remains is
short: 46 sets of at most 3 bits for the 20 likeliest. Sorting all of them by a network, many
fingerprints at once, is far faster than the heap of `kernels.vosh`, whose every step depends on the last.
"""

from functools import cache

import numpy as np
from numpy.typing import NDArray

from neardup.kernels.index.flipping import MOST_CANDIDATES

_Set = tuple[int, ...]


@cache
def candidate_sets(bits: int, most: int, wanted: int) -> NDArray[np.uint8]:
    """A column a set of 1 to `most` of `bits` ranks, filled up with `bits`. None when there are too many to look at."""
    accepted: list[_Set] = []
    # A set comes after everything that it is never cheaper than: ranks rise one by one, and new ones begin at 0.
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
    """The sets that are one step dearer, ranks in rising order."""
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
