"""Sorted runs: keys that no longer change, with what makes a probe one jump.

A run has distinct keys in rising order. Three forms, one behaviour: plain here, the two compressed ones in
`compressed_runs`. All are built in bounded steps, so that a merge never stalls a batch.
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
"""A filter has about 2^3 bits a key, an eighth of the table: seven of eight empty-handed probes end in it."""
LEAST_FILTERED: Final = 1 << 12


class SortedRun(Protocol):
    """What the slice asks of a run."""

    epoch: int

    @property
    def size(self) -> int:
        """How many keys."""

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""

    def probe(self, lookup: Lookup, found: Found) -> int:
        """Add every pair of a query and a key within its limit to `found`; return how many queries were capped."""

    def read(self, start: int, stop: int) -> NDArray[np.uint64]:
        """keys[start:stop], in order. Reading on from the last stop costs what is read."""

    def parts(self) -> Mapping[str, NDArray[np.generic]]:
        """The arrays that a snapshot keeps."""


class Builder(Protocol):
    """Makes a run from keys that are already in order, a bounded number at a time."""

    @property
    def nbytes(self) -> int:
        """Bytes of memory beside the keys."""

    def step(self, budget: int) -> bool:
        """Take at most `budget` keys further; True when the run is ready."""

    def run(self) -> SortedRun:
        """The run, once `step` said True."""


class PlainRun:
    """Keys as they are, a directory, and a bitmap of the leading bits where that is sparse."""

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
        """The same without asking the bitmap, for who has done so."""
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
    """Fills directory and bitmap over keys in order."""

    def __init__(
        self,
        keys: NDArray[np.uint64],
        *,
        skip: int,
        leading: int,
        epoch: int,
        spacing: int = FILTER_SPACING,
        spares: ArrayPool | None = None,
    ) -> None:
        self._keys, self._skip, self._epoch = keys, skip, epoch
        self._directory = KeyDirectory.empty(keys.size, skip, leading, spares)
        self._at = self._filled = 0
        bitmap_bits = max(0, keys.size - 1).bit_length() + spacing
        # Leading bits beyond p_i would turn away keys that match. Fewer than two bits a key turn away too little.
        self.bitmap_bits = min(max(bitmap_bits, 6), leading - skip)
        if (keys.size < LEAST_FILTERED and spacing == FILTER_SPACING) or self.bitmap_bits < max(
            6, keys.size.bit_length() + 1
        ):
            self.bitmap_bits = 0
        words = (1 << self.bitmap_bits) // 64 if self.bitmap_bits else 0
        self.bitmap: NDArray[np.uint64] = (
            np.empty(words, np.uint64) if spares is None else spares.array(words, np.uint64)
        )

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
