"""Sorted runs: immutable keys in rising order, with a directory and a filter for fast probes.

A run is plain, or compressed in one of two ways (see `compressed_runs`); all forms return the same results. Runs are
built in bounded steps, so that a merge never stalls a batch.
"""

from collections.abc import Mapping
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from neardup.index.lsm.array_pool import ArrayPool
from neardup.index.lsm.key_directory import KeyDirectory
from neardup.index.lsm.lookup import Found, Lookup
from neardup.kernels.index.probing import extend_filter, probe_filtered, probe_sorted

FILTER_SPACING: Final = 3
"""A filter has about 2^3 bits per key, an eighth of the run's size. Seven of eight probes without a match end in it."""
LEAST_FILTERED: Final = 1 << 12
"""Minimum number of keys of a run with a filter."""


class SortedRun(Protocol):
    """Interface of a run in a slice."""

    epoch: int

    @property
    def size(self) -> int:
        """Number of keys."""

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""

    def probe(self, lookup: Lookup, found: Found) -> int:
        """Add the matches of each lookup to `found` and return the number of capped lookups."""

    def read(self, start: int, stop: int) -> NDArray[np.uint64]:
        """Return keys[start:stop] in order. Sequential reads take time in proportion to what is read."""

    def parts(self) -> Mapping[str, NDArray[np.generic]]:
        """Return the arrays that a snapshot contains, by name."""


class Builder(Protocol):
    """Interface of a builder, which turns keys in order into a run, a bounded number at a time."""

    @property
    def nbytes(self) -> int:
        """Bytes of memory besides the keys."""

    def step(self, budget: int) -> bool:
        """Process at most `budget` more keys. Return True once the run is complete."""

    def run(self) -> SortedRun:
        """Return the run. `step` must have returned True."""


class PlainRun:
    """Uncompressed keys with a directory and, if it would be sparse enough, a bitmap of the leading bits."""

    def __init__(
        self,
        keys: NDArray[np.uint64],
        directory: NDArray[np.uint64],
        bitmap: NDArray[np.uint64],
        *,
        skip: int,
        epoch: int,
    ) -> None:
        self.keys = keys
        self.epoch = epoch
        self._directory = KeyDirectory(directory, skip)
        self.bitmap = bitmap
        self.bitmap_bits = (64 * bitmap.size).bit_length() - 1 if bitmap.size else 0

    @property
    def size(self) -> int:
        return int(self.keys.size)

    @property
    def nbytes(self) -> int:
        return int(self.keys.nbytes + self._directory.nbytes + self.bitmap.nbytes)

    def probe(self, lookup: Lookup, found: Found) -> int:
        if not self.bitmap_bits:
            return self.probe_unfiltered(lookup, found)
        entries = self._directory.entries
        return found.collect_capped(
            lookup,
            lambda start: probe_filtered(
                self.bitmap, self.bitmap_bits, self.keys, entries, lookup.queries, start, found.buffers, found.count
            ),
        )

    def probe_unfiltered(self, lookup: Lookup, found: Found) -> int:
        """Do as `probe` without the bitmap, for callers that have filtered by it."""
        entries = self._directory.entries
        return found.collect_capped(
            lookup,
            lambda start: probe_sorted(self.keys, entries, lookup.queries, start, found.buffers, found.count),
        )

    def read(self, start: int, stop: int) -> NDArray[np.uint64]:
        return self.keys[start:stop]

    def parts(self) -> Mapping[str, NDArray[np.generic]]:
        return {"keys": self.keys, "directory": self._directory.words, "bitmap": self.bitmap}


class PlainBuilder:
    """Builds the directory and the bitmap of a plain run."""

    def __init__(
        self,
        keys: NDArray[np.uint64],
        *,
        skip: int,
        leading: int,
        epoch: int,
        spacing: int = FILTER_SPACING,
        pool: ArrayPool | None = None,
    ) -> None:
        self._keys, self._skip, self._epoch = keys, skip, epoch
        self._directory = KeyDirectory.empty(keys.size, skip, leading, pool)
        self._at = self._filled = 0
        bitmap_bits = max(0, keys.size - 1).bit_length() + spacing
        # A filter on more than p_i leading bits would reject matches. One with fewer than two bits per key would reject
        # too few keys.
        self.bitmap_bits = min(max(bitmap_bits, 6), leading - skip)
        if (keys.size < LEAST_FILTERED and spacing == FILTER_SPACING) or self.bitmap_bits < max(
            6, keys.size.bit_length() + 1
        ):
            self.bitmap_bits = 0
        words = (1 << self.bitmap_bits) // 64 if self.bitmap_bits else 0
        self.bitmap: NDArray[np.uint64] = np.empty(words, np.uint64) if pool is None else pool.array(words, np.uint64)

    @property
    def nbytes(self) -> int:
        return int(self._directory.nbytes + self.bitmap.nbytes)

    def step(self, budget: int) -> bool:
        stop = min(self._keys.size, self._at + budget)
        self._directory.extend(self._keys, self._at, stop)
        if self.bitmap_bits:
            self._filled = extend_filter(
                self._keys, self._at, stop, self._skip, self.bitmap_bits, self.bitmap, self._filled
            )
        self._at = stop
        return stop == self._keys.size

    def run(self) -> PlainRun:
        return PlainRun(self._keys, self._directory.words, self.bitmap, skip=self._skip, epoch=self._epoch)
