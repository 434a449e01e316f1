"""Where pairs come from, by name: documents that share shingles, super shingles, bands or spots, or bits."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from neardup.kernels.offline.postings import MOST, PARTITIONS, TakingPart, count_rarities, reach_of
from neardup.kernels.offline.sketch_keys import (
    SampledRows,
    band_keys,
    sample_keys,
    sample_sizes,
    score_samples,
    score_spots,
    spot_keys,
    spot_sizes,
    super_keys,
)
from neardup.offline.corpus.columns import ColumnStore
from neardup.offline.options import Options
from neardup.offline.pairs.counted_runs import Score
from neardup.offline.pairs.hamming_sources import HammingSource, PsmSource
from neardup.offline.pairs.pair_source import IgnoredKeys, Pairs, PairSource
from neardup.offline.pairs.postings import Keys, Postings
from neardup.offline.pairs.shared_keys import pairs_with_shared_keys
from neardup.signatures.packed_sketch import LEAST_SAMPLED

MARGIN: Final = 0.25
"""Pairs whose samples say less than the thresholds by this much are dropped: four standard deviations of the difference
between the samples' estimate of resemblance (75 shingles or so) and that of 128 MIPs values, which decides. Containment
is decided by the same samples: no pair is lost."""
_ROUNDING: Final = 1e-9


class SharedKeyBounds(NamedTuple):
    """How many keys each row shares at least with any that it is wanted with: `with_any`, and as the smaller one at its
    own modulus and at the next ones. How many it has there, common ones included. For exponents see TakingPart.

    Where keys know no modulus, there is one.
    """

    with_any: NDArray[np.int64]
    as_smaller: NDArray[np.int64]
    exponents: NDArray[np.uint8]
    sizes: NDArray[np.uint16]


class KeySource(ABC):
    """Documents that share keys of one kind. A subclass says which keys, who takes part, what a pair is worth.

    The postings stay, and new rows are merged in. Shingles that become common later keep the pairs found before.
    """

    name: str

    def __init__(self, directory: Path, options: Options) -> None:
        self._directory, self._options = directory, options
        self.postings = Postings(directory, f"{self.name} {self._parameters()} of {options.signature_version}")

    def pairs(
        self,
        documents: ColumnStore,
        kept: NDArray[np.bool_],
        first_new: int,
        progress: Callable[[int, int], None],
    ) -> tuple[Pairs, IgnoredKeys]:
        """See PairSource."""
        options = self._options
        most_keys = self._most_keys(documents)
        with self.postings.extended(documents, kept, self.keys_of, most_keys, options.memory_bytes):
            participation, beyond = self._participation(documents, kept)
            return pairs_with_shared_keys(
                self.postings,
                participation,
                first_new,
                common=options.common,
                memory_bytes=options.memory_bytes,
                directory=self._directory,
                score=self._score(documents, participation, beyond),
                progress=progress,
            )

    @abstractmethod
    def keys_of(self, documents: ColumnStore, rows: NDArray[np.int64]) -> Keys:
        """The keys of each row, one row after the other, and how many each has."""

    def _parameters(self) -> str:
        """What the keys depend on beside the sketches."""
        return ""

    def _most_keys(self, documents: ColumnStore) -> NDArray[np.int64]:
        """How many keys each row has at most; if nothing better is known, one for each word of its sketch."""
        return np.diff(documents.starts)

    def _bounds(self, documents: ColumnStore) -> SharedKeyBounds | None:
        """None: one key, whatever else is known."""
        return None

    def _participation(self, documents: ColumnStore, kept: NDArray[np.bool_]) -> tuple[TakingPart, NDArray[np.uint16]]:
        """Who takes part in which keys, and how many of its keys are beyond that: as the smaller one at each modulus,
        and with any.

        Rows that share n keys share one that is not among the n - 1 most frequent of either: these need not be looked
        at. They are what the pages of a host share, most of all.
        """
        common = self._options.common
        everywhere = np.where(kept, common.bit_length(), 0).astype(np.uint8)
        bounds = self._bounds(documents)
        if bounds is None:
            zeros = np.zeros((len(documents), 1), np.uint16)
            return TakingPart(everywhere, zeros[:, 0].astype(np.uint8), zeros, everywhere[:, None]), zeros
        levels = bounds.sizes.shape[1]
        counts = np.zeros((len(documents), levels, common.bit_length() + 1), np.uint8)
        for number in range(PARTITIONS):
            count_rarities(self.postings.partition(number), everywhere, bounds.exponents, common, counts)
        reach, with_any = reach_of(counts, 0, bounds.sizes[:, 0].astype(np.int64), bounds.with_any)
        reach = np.minimum(reach, everywhere)
        as_smaller = np.empty((len(documents), levels), np.uint8)
        beyond = np.empty((len(documents), levels + 1), np.uint16)
        beyond[:, levels] = with_any
        for level in range(levels):
            sizes, needed = bounds.sizes[:, level].astype(np.int64), bounds.as_smaller[:, level]
            reach_here, beyond_here = reach_of(counts, level, sizes, needed)
            as_smaller[:, level] = np.minimum(reach_here, reach)
            beyond[:, level] = np.where(reach_here <= reach, beyond_here, with_any)
        beyond[bounds.sizes[:, 0] == MOST] = MOST
        return TakingPart(reach, bounds.exponents, bounds.sizes, as_smaller), beyond

    def _score(self, documents: ColumnStore, participation: TakingPart, beyond: NDArray[np.uint16]) -> Score:
        """How many keys a pair shares, if nothing better is known."""
        return lambda pairs, counts: counts.astype(np.float32)


class ShingleSource(KeySource):
    """Documents with sampled shingles in common (Broder 1997), one of them not common to many.

    The score is their resemblance, or containment one way or the other, whichever is most, by the samples at the
    coarser modulus. Pairs far below both thresholds are dropped.
    """

    name = "shingles"

    def keys_of(self, documents: ColumnStore, rows: NDArray[np.int64]) -> Keys:
        return Keys(*sample_keys(documents.words, documents.starts, rows))

    def _bounds(self, documents: ColumnStore) -> SharedKeyBounds:
        """With any: what a containment needs, where a resemblance needs no less, which is nearly everywhere. A small
        sample is of a small document, so that it is all of it: what is sampled less is larger.

        As the smaller one, of s keys: at least c s for a containment of c, and 2 r s / (1 + r) for a resemblance of r.
        """
        resemblance, containment = self._least
        exponents, sizes = sample_sizes(documents.words, documents.starts)
        contained = np.ceil(containment * LEAST_SAMPLED - _ROUNDING)
        large = resemblance * sizes[:, 0] > contained - 1
        with_any = np.where(large, contained, 1).astype(np.int64)
        share = max(min(containment, 2 * resemblance / (1 + resemblance)), 0.0)
        as_smaller = np.maximum(np.ceil(share * sizes - _ROUNDING), 1).astype(np.int64)
        return SharedKeyBounds(with_any, as_smaller, exponents, sizes)

    @property
    def _least(self) -> tuple[float, float]:
        thresholds = self._options.thresholds
        return thresholds.resemblance - MARGIN, thresholds.containment - MARGIN

    def _score(self, documents: ColumnStore, participation: TakingPart, beyond: NDArray[np.uint16]) -> Score:
        rows = SampledRows(documents.words, documents.starts, participation.exponents, participation.sizes)
        return lambda pairs, counts: score_samples(rows, pairs, counts, beyond, *self._least, LEAST_SAMPLED)


class SuperShingleSource(KeySource):
    """Documents with super shingles in common (Broder 1997). The score is how many: one makes a resemblance likely."""

    name = "supers"

    def keys_of(self, documents: ColumnStore, rows: NDArray[np.int64]) -> Keys:
        return Keys(*super_keys(documents.words, documents.starts, rows, self._options.super_size))

    def _parameters(self) -> str:
        return f"of {self._options.super_size}"


class BandSource(KeySource):
    """Documents with bands of the MIPs vector in common (lecture V.5.4). The score is how many."""

    name = "bands"

    def keys_of(self, documents: ColumnStore, rows: NDArray[np.int64]) -> Keys:
        bands = self._options.bands
        return Keys(*band_keys(documents.words, documents.starts, rows, bands.k, bands.s))

    def _parameters(self) -> str:
        return f"{self._options.bands.k}x{self._options.bands.s}"


class SpotSource(KeySource):
    """Documents whose bags of spot signatures resemble (lecture V.5.2), and share one that is not common.

    The score is the resemblance of the bags; pairs below the threshold are dropped.
    """

    name = "spots"

    def keys_of(self, documents: ColumnStore, rows: NDArray[np.int64]) -> Keys:
        return Keys(*spot_keys(documents.words, documents.starts, rows))

    def _most_keys(self, documents: ColumnStore) -> NDArray[np.int64]:
        """One for each occurrence, of which a word of the sketch may have many."""
        sizes: NDArray[np.int64] = spot_sizes(documents.words, documents.starts)
        return sizes

    def _bounds(self, documents: ColumnStore) -> SharedKeyBounds:
        sizes: NDArray[np.int64] = spot_sizes(documents.words, documents.starts)
        needed = np.ceil(self._options.spot_resemblance * sizes - _ROUNDING).astype(np.int64)
        at_most = np.minimum(sizes, MOST).astype(np.uint16)
        return SharedKeyBounds(needed, needed[:, None], np.zeros(sizes.size, np.uint8), at_most[:, None])

    def _score(self, documents: ColumnStore, participation: TakingPart, beyond: NDArray[np.uint16]) -> Score:
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
