"""A table: a permutation of the 64 bits, and the number of leading bits of its keys that a match must share.

Bit positions are counted from the most significant bit, 0 to 63, as in the figures of Manku 2007.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from neardup.kernels.index.permuting import permute

BITS: Final = 64
_ALL: Final = 2**BITS - 1


def leading_mask(leading: int) -> int:
    """Return a word whose first `leading` bits are ones."""
    return _ALL ^ (_ALL >> leading)


@dataclass(frozen=True)
class Table:
    """A table. Bit j of a key is bit `order[j]` of the fingerprint, and `leading` is Manku's p_i."""

    order: tuple[int, ...]
    leading: int

    def __post_init__(self) -> None:
        if sorted(self.order) != list(range(BITS)) or not 0 <= self.leading <= BITS:
            raise ValueError(f"expected a permutation of 0..63 and 0 to 64 leading bits, got {self}")

    @classmethod
    def plain(cls, leading: int) -> "Table":
        """Return the table whose keys are the fingerprints themselves, for PSM."""
        return cls(tuple(range(BITS)), leading)

    @property
    def mask(self) -> np.uint64:
        """The word in which the leading bits are ones."""
        return np.uint64(leading_mask(self.leading))

    def keys_of(self, fingerprints: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Return the keys of fingerprints, which are the permuted fingerprints."""
        return _moved(fingerprints, *self._forth)

    def fingerprints_of(self, keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Invert `keys_of`."""
        return _moved(keys, *self._back)

    @cached_property
    def _forth(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        return moves(self.order)

    @cached_property
    def _back(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        return moves([self.order.index(bit) for bit in range(BITS)])


def moves(order: Sequence[int]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return a permutation as (masks, rotations to the left). Bits that move by the same distance share a mask."""
    masks: dict[int, int] = {}
    for target, source in enumerate(order):
        distance = (source - target) % BITS
        masks[distance] = masks.get(distance, 0) | 1 << (BITS - 1 - source)
    return np.array(list(masks.values()), np.uint64), np.array(list(masks), np.uint64)


def _moved(words: NDArray[np.uint64], masks: NDArray[np.uint64], rotations: NDArray[np.uint64]) -> NDArray[np.uint64]:
    out = np.empty_like(words)
    permute(words, masks, rotations, out)
    return out
