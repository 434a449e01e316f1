"""Probabilistic search (Sood & Loguinov 2011 §6.2): one table, the likeliest flips of the header looked up in turn.

A flip of i header bits becomes an ordinary lookup: the flipped key, the header to match, k - i bits for the rest. So
the same slices serve it, and a flip may be sent to another slice than its fingerprint.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from neardup.flip_model import FlipModel
from neardup.kernels.vosh import flip_lookups
from neardup.lookup import DEFAULT_CAP, Found, Lookup, Matches
from neardup.slice import Slice

BATCH: Final = 2048
"""Queries whose lookups are made at once: they fit the cache."""
_STAGES: Final = (1, 4, 12)
"""Where the search for the first match stops to see who is done: itself, the likeliest flips, more, all."""


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
        keys = np.empty((fingerprints.size, self.attempts + 1), np.uint64)
        limits = np.empty_like(keys)
        flip_lookups(fingerprints, levels, self.model.table, self.header, self.k, self.attempts, keys, limits)
        return keys, limits

    def find_all(self, kept: Slice, fingerprints: NDArray[np.uint64], levels: NDArray[np.uint8]) -> Matches:
        """Every match that the flips reach (PSM_A)."""
        return self._find(kept, fingerprints, levels, (self.attempts + 1,))

    def find_first(self, kept: Slice, fingerprints: NDArray[np.uint64], levels: NDArray[np.uint8]) -> Matches:
        """At least one match of each fingerprint that has one within reach, likeliest flips first (PSM_F)."""
        stages = [stage for stage in _STAGES if stage <= self.attempts]
        return self._find(kept, fingerprints, levels, (*stages, self.attempts + 1))

    def _find(
        self, kept: Slice, fingerprints: NDArray[np.uint64], levels: NDArray[np.uint8], stages: tuple[int, ...]
    ) -> Matches:
        found = Found()
        for start in range(0, fingerprints.size, BATCH):
            batch = slice(start, start + BATCH)
            self._find_batch(kept, fingerprints[batch], levels[batch], stages, start, found)
        return found.matches(fingerprints, self.cap)

    def _find_batch(
        self,
        kept: Slice,
        fingerprints: NDArray[np.uint64],
        levels: NDArray[np.uint8],
        stages: tuple[int, ...],
        start: int,
        found: Found,
    ) -> None:
        waiting = np.arange(fingerprints.size)
        done = 0
        if stages[0] == 1 and len(stages) > 1:
            # Copies with the same header need no flips at all: most of what is found, before any heap is built.
            own = np.full(fingerprints.size, self.k, np.uint64)
            self._collect(kept, fingerprints, own, waiting + start, found)
            waiting = _without(waiting, found, start)
            done, stages = 1, stages[1:]
        keys, limits = self.lookups(fingerprints[waiting], levels[waiting])
        rows = np.arange(waiting.size)
        for stop in stages:
            owners = np.repeat(waiting[rows], stop - done) + start
            self._collect(kept, keys[rows, done:stop].ravel(), limits[rows, done:stop].ravel(), owners, found)
            done = stop
            if stop != stages[-1]:
                rows = rows[np.isin(waiting[rows], _without(waiting[rows], found, start), assume_unique=True)]

    def _collect(
        self,
        kept: Slice,
        keys: NDArray[np.uint64],
        limits: NDArray[np.uint64],
        owners: NDArray[np.int64],
        found: Found,
    ) -> None:
        before = found.count
        kept.collect(Lookup(keys, limits, self.header, self.cap), found)
        found.query[before : found.count] = owners[found.query[before : found.count]]


def _without(waiting: NDArray[np.int64], found: Found, start: int) -> NDArray[np.int64]:
    """Those of `waiting` that found nothing yet."""
    hit = np.zeros(BATCH, bool)
    numbers = found.query[: found.count] - start
    hit[numbers[numbers >= 0]] = True
    return waiting[~hit[waiting]]
