"""Probabilistic search (Sood & Loguinov 2011 §6.2): lookups of the likeliest flips of the header in one table.

A flip of i header bits is an ordinary lookup of the flipped key, whose matches agree in the header and differ in at
most k - i other bits. The search therefore uses the same slices as the exact search. A flip may belong to another slice
than its fingerprint.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from neardup.index.lsm.lookup import DEFAULT_CAP, Found, Lookup, Matches
from neardup.index.psm.flip_model import FlipModel
from neardup.index.psm.flip_sets import candidate_sets
from neardup.index.psm.sorting_network import sorting_network
from neardup.index.slices.slice import Slice
from neardup.kernels.index.flipping import FlipSearch, flip_lookups

BATCH: Final = 2048
"""Number of queries whose lookups are computed at once. They fit the cache."""


@dataclass(frozen=True)
class Psm:
    """The probabilistic search. `header` is t of the paper, and `attempts` is its k(t).

    Neither mode reports pairs further apart than k.
    """

    model: FlipModel
    header: int
    attempts: int
    k: int = 3
    cap: int = DEFAULT_CAP

    def lookups(
        self, fingerprints: NDArray[np.uint64], levels: NDArray[np.uint8]
    ) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Return (keys, limits) with a row per fingerprint: the fingerprint itself, then its flips, likeliest first."""
        return self._lookups(fingerprints, levels, np.arange(fingerprints.size), own=1)

    def _lookups(
        self, fingerprints: NDArray[np.uint64], levels: NDArray[np.uint8], numbers: NDArray[np.int64], *, own: int
    ) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Return the rows of the fingerprints with these numbers. With `own` 0, rows have only the flips."""
        keys = np.empty((numbers.size, own + self.attempts), np.uint64)
        limits = np.empty_like(keys)
        candidates = candidate_sets(self.header, self.k, self.attempts)
        search = FlipSearch(
            costs=self.model.table,
            header=self.header,
            most=self.k,
            candidates=candidates,
            ranking=sorting_network(self.header, self.header),
            choosing=sorting_network(candidates.shape[1], self.attempts),
        )
        flip_lookups(fingerprints, levels, numbers, search, own, keys, limits)
        return keys, limits

    def find_all(self, kept: Slice, fingerprints: NDArray[np.uint64], levels: NDArray[np.uint8]) -> Matches:
        """Return all matches that the flips reach (PSM_A)."""
        found = Found()
        for start in range(0, fingerprints.size, BATCH):
            numbers = np.arange(start, min(start + BATCH, fingerprints.size))
            self._collect(kept, *self._lookups(fingerprints, levels, numbers, own=1), numbers, found)
        return found.matches(fingerprints, self.cap)

    def find_first(self, kept: Slice, fingerprints: NDArray[np.uint64], levels: NDArray[np.uint8]) -> Matches:
        """Return at least one match of each fingerprint that has a match within reach (PSM_F).

        Most matches have the same header as the fingerprint, so these are looked up before any flip is computed. (To
        stop between flips as well would save few lookups, as most pages have no match, and cost more than it saves.)
        """
        found = Found()
        for start in range(0, fingerprints.size, BATCH):
            numbers = np.arange(start, min(start + BATCH, fingerprints.size))
            before = found.count
            themselves = fingerprints[start : start + BATCH, None]
            self._collect(kept, themselves, np.full_like(themselves, self.k), numbers, found)
            waiting = np.ones(numbers.size, bool)
            waiting[found.query[before : found.count] - start] = False
            numbers = numbers[waiting]
            self._collect(kept, *self._lookups(fingerprints, levels, numbers, own=0), numbers, found)
        return found.matches(fingerprints, self.cap)

    def _collect(
        self,
        kept: Slice,
        keys: NDArray[np.uint64],
        limits: NDArray[np.uint64],
        numbers: NDArray[np.int64],
        found: Found,
    ) -> None:
        """Add the matches of the lookups of row i to `found` under numbers[i]."""
        before = found.count
        kept.collect(Lookup(keys.ravel(), limits.ravel(), self.header, self.cap), found)
        found.query[before : found.count] = numbers[found.query[before : found.count] // keys.shape[1]]
