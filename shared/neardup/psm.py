"""Probabilistic search (Sood & Loguinov 2011 §6.2): one table, the likeliest flips of the header looked up in turn.

A flip of i header bits becomes an ordinary lookup: the flipped key, the header to match, k - i bits for the rest. So
the same slices serve it, and a flip may be sent to another slice than its fingerprint.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from neardup.candidates import candidate_sets
from neardup.flip_model import FlipModel
from neardup.kernels.flipping import flip_lookups
from neardup.kernels.radix import sort_words
from neardup.lookup import DEFAULT_CAP, Found, Lookup, Matches
from neardup.slice import Slice
from neardup.sorting_network import sorting_network
from neardup.table import BITS, leading_mask

BATCH: Final = 8192
"""Queries whose lookups are made at once: the cache still holds them when they are looked up."""
ORDERED_BITS: Final = 12
"""Queries are looked up in the order of so many leading bits."""
_LEADING: Final = np.uint64(leading_mask(ORDERED_BITS))


@dataclass(frozen=True)
class Psm:
    """`header` is the paper's t, `attempts` its k(t). Neither mode reports a pair further apart than k."""

    model: FlipModel
    header: int
    attempts: int
    k: int = 3
    cap: int = DEFAULT_CAP

    def lookups(
        self, fingerprints: NDArray[np.uint64], levels: NDArray[np.uint8]
    ) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """(keys, limits), a row a fingerprint, likeliest first, beginning with the fingerprint itself."""
        room = self._room(fingerprints.size, own=1)
        return self._lookups(fingerprints, levels, np.arange(fingerprints.size), room, own=1)

    def find_all(self, kept: Slice, fingerprints: NDArray[np.uint64], levels: NDArray[np.uint8]) -> Matches:
        """Every match that the flips reach (PSM_A)."""
        found, room = Found(), self._room(BATCH, own=1)
        for numbers in _neighbours(fingerprints):
            self._collect(kept, *self._lookups(fingerprints, levels, numbers, room, own=1), numbers, found)
        return found.matches(fingerprints, self.cap)

    def find_first(self, kept: Slice, fingerprints: NDArray[np.uint64], levels: NDArray[np.uint8]) -> Matches:
        """At least one match of each fingerprint that has one within reach (PSM_F).

        Copies with the same header are most of what is found, so those are looked for before any flip is made. (Further
        stops between the flips save few lookups, as most pages have no match, and cost more than they save.)
        """
        found, room = Found(), self._room(BATCH, own=0)
        waiting = np.ones(fingerprints.size, bool)
        for numbers in _neighbours(fingerprints):
            before = found.count
            themselves = fingerprints[numbers, None]
            self._collect(kept, themselves, np.full_like(themselves, self.k), numbers, found)
            waiting[found.query[before : found.count]] = False
            numbers = numbers[waiting[numbers]]
            self._collect(kept, *self._lookups(fingerprints, levels, numbers, room, own=0), numbers, found)
        return found.matches(fingerprints, self.cap)

    def _room(self, rows: int, *, own: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """For the lookups of so many fingerprints. Every block uses it again: fresh memory costs as much as they do."""
        keys = np.empty((rows, own + self.attempts), np.uint64)
        return keys, np.empty_like(keys)

    def _lookups(
        self,
        fingerprints: NDArray[np.uint64],
        levels: NDArray[np.uint8],
        numbers: NDArray[np.int64],
        room: tuple[NDArray[np.uint64], NDArray[np.uint64]],
        *,
        own: int,
    ) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """The rows of the fingerprints with these numbers, in that room; `own` is 0 for the flips alone."""
        keys, limits = (each[: numbers.size] for each in room)
        candidates = candidate_sets(self.header, self.k, self.attempts)
        flip_lookups(
            fingerprints, levels, numbers, self.model.table, self.header, self.k, candidates,
            sorting_network(self.header, self.header), sorting_network(candidates.shape[1], self.attempts),
            own, keys, limits,
        )  # fmt: skip
        return keys, limits

    def _collect(
        self,
        kept: Slice,
        keys: NDArray[np.uint64],
        limits: NDArray[np.uint64],
        numbers: NDArray[np.int64],
        found: Found,
    ) -> None:
        """Add what the lookups of row i find to `found` under numbers[i]."""
        before = found.count
        kept.collect(Lookup(keys.ravel(), limits.ravel(), self.header, self.cap), found)
        found.query[before : found.count] = numbers[found.query[before : found.count] // keys.shape[1]]


def _neighbours(fingerprints: NDArray[np.uint64]) -> Iterator[NDArray[np.int64]]:
    """The numbers of the fingerprints, a block at a time, in the order of their leading bits.

    A flip of n bits leads to one of few regions of the table, the same for all of a block: their part of the directory
    stays in the near cache, and the pages of memory that hold them are few.
    """
    words = (fingerprints & _LEADING) | np.arange(fingerprints.size, dtype=np.uint64)
    sort_words(words, np.empty_like(words), BITS - ORDERED_BITS, BITS)
    numbers = (words & ~_LEADING).astype(np.int64)
    for start in range(0, numbers.size, BATCH):
        yield numbers[start : start + BATCH]
