"""Sorting networks: fixed sequences of comparisons, by which many lists are sorted at once."""

from functools import cache

import numpy as np
from numpy.typing import NDArray


@cache
def sorting_network(size: int, first: int) -> NDArray[np.uint8]:
    """Return a network that sorts the `first` smallest of `size` numbers to the front, as pairs of positions.

    Each pair is a comparison that moves the smaller number to its first position. The network is Batcher's merge
    exchange (Knuth, volume 3, algorithm 5.2.2M), without the pairs that affect only positions from `first` on.
    """
    pairs: list[tuple[int, int]] = []
    top = 1 << (size - 1).bit_length() - 1 if size > 1 else 0
    span = top
    while span:
        step, wanted, distance = top, 0, span
        while True:
            pairs += [(i, i + distance) for i in range(size - distance) if i & span == wanted]
            if step == span:
                break
            distance, step, wanted = step - span, step >> 1, span
        span >>= 1
    needed = set(range(first))
    kept = []
    for pair in reversed(pairs):
        if needed.intersection(pair):
            needed.update(pair)
            kept.append(pair)
    return np.array(kept[::-1], np.uint8).reshape(-1, 2)
