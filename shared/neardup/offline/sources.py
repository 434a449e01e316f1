"""Where pairs come from, by name: documents that share shingles, super shingles, bands or spots, or bits."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from neardup.kernels.postings import PARTITIONS, count_rarities
from neardup.kernels.sketch_keys import (
    band_keys,
    sample_keys,
    score_samples,
    score_spots,
    spot_keys,
    spot_sizes,
    super_keys,
)
from neardup.offline.fingerprint_sources import HammingSource, PsmSource
from neardup.offline.gathered import Gathered
from neardup.offline.options import Options
from neardup.offline.pairs import Counted, Pairs, PairSource
from neardup.offline.postings import Keys, Postings
from neardup.offline.shared_keys import Score, pairs_sharing
from neardup.packed_sketch import LEAST_SAMPLED

MARGIN: Final = 0.25
"""Pairs whose samples say less than the thresholds by this much are dropped: four standard deviations of the difference
between the samples' estimate of resemblance (75 shingles or so) and that of 128 MIPs values, which decides. Containment
is decided by the same samples; there it makes up for shingles that are ignored because they are common."""
_ANY_RARITY: Final = 64


class KeySource:
    """Documents that share keys of one kind. A subclass says which keys, who takes part, what a pair is worth.

    The postings stay, and new rows are merged in. Shingles that become common later keep the pairs found before.
    """

    name: str

    def __init__(self, directory: Path, options: Options) -> None:
        self._directory, self._options = directory, options
        self.postings = Postings(directory, f"{self.name} {self._choices()} of {options.signature_version}")

    def pairs(
        self,
        documents: Gathered,
        kept: NDArray[np.bool_],
        first_new: int,
        progress: Callable[[int, int], None],
    ) -> tuple[Pairs, Counted]:
        """See PairSource."""
        options = self._options
        self.postings.add(documents, kept, self.keys_of, options.memory_bytes)
        return pairs_sharing(
            self.postings,
            self._reach(documents, kept),
            first_new,
            common=options.common,
            memory_bytes=options.memory_bytes,
            directory=self._directory,
            score=self._score(documents),
            progress=progress,
        )

    def keys_of(self, documents: Gathered, rows: NDArray[np.int64]) -> Keys:
        """The keys of each row, one row after the other, and how many each has."""
        raise NotImplementedError

    def _choices(self) -> str:
        """What the keys depend on beside the sketches."""
        return ""

    def _reach(self, documents: Gathered, kept: NDArray[np.bool_]) -> NDArray[np.uint8]:
        return np.where(kept, _ANY_RARITY, 0).astype(np.uint8)

    def _score(self, documents: Gathered) -> Score:
        """How many keys a pair shares, if nothing better is known."""
        return lambda pairs, counts: counts.astype(np.float32)


class ShingleSource(KeySource):
    """Documents with sampled shingles in common (Broder 1997). The score is their resemblance or containment."""

    name = "shingles"

    def keys_of(self, documents: Gathered, rows: NDArray[np.int64]) -> Keys:
        return Keys(*sample_keys(documents.words, documents.starts, rows))

    def _score(self, documents: Gathered) -> Score:
        thresholds = self._options.thresholds
        least = thresholds.resemblance - MARGIN, thresholds.containment - MARGIN
        words, starts = documents.words, documents.starts
        return lambda pairs, counts: score_samples(words, starts, pairs, counts, *least, LEAST_SAMPLED)


class SuperShingleSource(KeySource):
    """Documents with super shingles in common (Broder 1997). The score is how many: one makes a resemblance likely."""

    name = "supers"

    def keys_of(self, documents: Gathered, rows: NDArray[np.int64]) -> Keys:
        return Keys(*super_keys(documents.words, documents.starts, rows, self._options.super_size))

    def _choices(self) -> str:
        return f"of {self._options.super_size}"


class BandSource(KeySource):
    """Documents with bands of the MIPs vector in common (lecture V.5.4). The score is how many."""

    name = "bands"

    def keys_of(self, documents: Gathered, rows: NDArray[np.int64]) -> Keys:
        bands = self._options.bands
        return Keys(*band_keys(documents.words, documents.starts, rows, bands.k, bands.s))

    def _choices(self) -> str:
        return f"{self._options.bands.k}x{self._options.bands.s}"


class SpotSource(KeySource):
    """Documents whose bags of spot signatures resemble (lecture V.5.2), and share one that is not common.

    The score is the resemblance of the bags; those below the threshold are dropped. Where it is t, documents that reach
    it share a spot even when of each only the rarest are looked at: all but fewer than t of its size.
    """

    name = "spots"

    def keys_of(self, documents: Gathered, rows: NDArray[np.int64]) -> Keys:
        return Keys(*spot_keys(documents.words, documents.starts, rows))

    def _reach(self, documents: Gathered, kept: NDArray[np.bool_]) -> NDArray[np.uint8]:
        rarest = self._options.common.bit_length()
        counts = np.zeros((len(documents), rarest + 1), np.uint16)
        everywhere = super()._reach(documents, kept)
        for number in range(PARTITIONS):
            count_rarities(self.postings.partition(number), everywhere, self._options.common, counts)
        sizes = spot_sizes(documents.words, documents.starts)
        needed = np.ceil(self._options.spot_resemblance * sizes - 1e-9)
        # Left out, beginning with the most frequent, the common ones included.
        out = sizes - counts.sum(axis=1)
        reach = np.full(len(documents), rarest)
        for each in range(rarest, 0, -1):
            out += counts[:, each]
            reach[(reach == each) & (out < needed)] -= 1
        return np.where(kept, reach, 0).astype(np.uint8)

    def _score(self, documents: Gathered) -> Score:
        words, starts, least = documents.words, documents.starts, self._options.spot_resemblance
        sizes = spot_sizes(words, starts)
        return lambda pairs, counts: score_spots(words, starts, sizes, pairs, least)


_SOURCES: Final[dict[str, Callable[[Path, Options], PairSource]]] = {
    "shingles": ShingleSource,
    "supers": SuperShingleSource,
    "bands": BandSource,
    "spots": SpotSource,
    "hamming": HammingSource,
    "psm": PsmSource,
}


def make_source(name: str, directory: Path, options: Options) -> PairSource:
    """The source that the settings call `name`; it keeps what it knows in a directory of its own."""
    return _SOURCES[name](directory, options)
