"""Pair sources by name: documents that share shingles, super shingles, bands or spots, or have near fingerprints."""

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
"""Tolerance of the estimate by samples. Pairs whose estimate is below the thresholds by more than this are dropped.

For resemblance, the decision uses 128 MIPs values instead. The tolerance is four standard deviations of the difference
between this estimate and the estimate by samples of about 75 shingles. Containment is decided by the same samples, so
no contained document is lost.
"""
_ROUNDING: Final = 1e-9


class SharedKeyBounds(NamedTuple):
    """Lower bounds for the number of keys that a row shares with each row with which it should form a pair.

    `with_any` is the bound for any other row. `as_smaller` is the bound if the row is the smaller one of the pair, at
    its own modulus and at the following moduli. `sizes` has the number of keys of the row at each modulus, including
    common keys. `exponents` is explained at TakingPart. Keys without a modulus have one column.
    """

    with_any: NDArray[np.int64]
    as_smaller: NDArray[np.int64]
    exponents: NDArray[np.uint8]
    sizes: NDArray[np.uint16]


class KeySource(ABC):
    """Pairs of documents that share keys of one kind. A subclass defines the keys, the bounds and the score.

    The postings are kept between passes, and new rows are merged into them. Pairs found by a key remain when the key
    becomes common later.
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
        """Return the new pairs as `PairSource` specifies."""
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
        """Return the keys of each row, one row after the other, and their number per row."""

    def _parameters(self) -> str:
        """Return the parameters that the keys depend on, apart from the sketches."""
        return ""

    def _most_keys(self, documents: ColumnStore) -> NDArray[np.int64]:
        """Return an upper bound for the number of keys of each row. The default is one key per word of its sketch."""
        return np.diff(documents.starts)

    def _bounds(self, documents: ColumnStore) -> SharedKeyBounds | None:
        """Return the bounds, or None if one shared key suffices."""
        return None

    def _participation(self, documents: ColumnStore, kept: NDArray[np.bool_]) -> tuple[TakingPart, NDArray[np.uint16]]:
        """Return the participation of each row by rarity of keys, and the numbers of its keys beyond the participation.

        The numbers are given for the row as the smaller one at each modulus, and for the row with any other. Two rows
        that share n keys share a key that is not among the n - 1 most frequent keys of either row, so these frequent
        keys can be skipped. They are mainly keys that all pages of a host share.
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
        """Return the score of pairs. The default is the number of shared keys."""
        return lambda pairs, counts: counts.astype(np.float32)


class ShingleSource(KeySource):
    """Pairs of documents that share sampled shingles, at least one of which is not common (Broder 1997).

    The score is the largest of resemblance and both containments, estimated by the samples at the coarser modulus.
    Pairs far below both thresholds are dropped.
    """

    name = "shingles"

    def keys_of(self, documents: ColumnStore, rows: NDArray[np.int64]) -> Keys:
        return Keys(*sample_keys(documents.words, documents.starts, rows))

    def _bounds(self, documents: ColumnStore) -> SharedKeyBounds:
        """Return the bounds that follow from the thresholds.

        The bound with any row is the number of keys that containment requires, if resemblance requires no fewer, which
        holds for nearly all rows. A small sample comes from a small document and is complete, so every document with a
        coarser sample is larger.

        The bound as the smaller row, with s keys, is c s for a containment of c, and 2 r s / (1 + r) for a resemblance
        of r.
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
    """Pairs of documents that share super shingles (Broder 1997). The score is the number of shared super shingles."""

    name = "supers"

    def keys_of(self, documents: ColumnStore, rows: NDArray[np.int64]) -> Keys:
        return Keys(*super_keys(documents.words, documents.starts, rows, self._options.super_size))

    def _parameters(self) -> str:
        return f"of {self._options.super_size}"


class BandSource(KeySource):
    """Pairs of documents that share bands of the MIPs vector (lecture V.5.4).

    The score is the number of shared bands.
    """

    name = "bands"

    def keys_of(self, documents: ColumnStore, rows: NDArray[np.int64]) -> Keys:
        bands = self._options.bands
        return Keys(*band_keys(documents.words, documents.starts, rows, bands.k, bands.s))

    def _parameters(self) -> str:
        return f"{self._options.bands.k}x{self._options.bands.s}"


class SpotSource(KeySource):
    """Pairs of documents with similar bags of spot signatures (lecture V.5.2).

    The bags must share at least one spot that is not common. The score is the resemblance of the bags. Pairs below the
    threshold are dropped.
    """

    name = "spots"

    def keys_of(self, documents: ColumnStore, rows: NDArray[np.int64]) -> Keys:
        return Keys(*spot_keys(documents.words, documents.starts, rows))

    def _most_keys(self, documents: ColumnStore) -> NDArray[np.int64]:
        """Return the number of occurrences of spots. One word of the sketch may stand for many of them."""
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
    """Create the source with this name in the settings. It keeps its state in the directory, which no other may use."""
    return _SOURCES[name](directory, options)
