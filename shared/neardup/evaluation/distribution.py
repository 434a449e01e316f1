"""Distribution of fingerprints: neighbours and buckets (Manku 2007 §4.2, figure 2), weights (Sood 2011 §4.2, figure 1).

Simhash gives similar pages similar fingerprints. Neighbours in sorted order therefore agree in more bits than random
fingerprints do, and some buckets are crowded. A spike is a fingerprint of many pages. It gets a name if the text of the
pages identifies their kind.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from neardup.evaluation.spikes import Spike, name_of
from neardup.index.plan.table import BITS
from neardup.index.psm.flip_model import scaled
from neardup.kernels.index.huffman import count_positions
from neardup.signatures.signature import Signatures
from neardup.types import Page

BUCKET_BITS: Final = 7
"""Number of leading bits, which select one of 128 buckets as in figure 2 of Manku 2007."""
REACH: Final = 4.0
STEPS: Final = 80
"""Number of steps from -4 to 4 in which weights are counted. The unit is the root mean square of a page's weights."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """Counts by position. Positions of bits count from the right, positions of buckets and weights from the left."""

    pages: int
    skipped: dict[str, int]
    distinct: int
    leading: NDArray[np.int64]
    random_leading: NDArray[np.int64]
    buckets: NDArray[np.int64]
    weights: NDArray[np.int64]
    changes: NDArray[np.int64]
    spikes: list[Spike]

    def shares(self) -> list[tuple[int, float, float]]:
        """Return (position of the leading 1, its share of neighbours, its share for random fingerprints)."""
        own, random = (each / max(each.sum(), 1) for each in (self.leading, self.random_leading))
        return list(zip(range(BITS), own.tolist(), random.tolist(), strict=True))

    def as_dict(self) -> dict[str, object]:
        """Return values for JSON."""
        arrays = {name: getattr(self, name).tolist() for name in
                  ("leading", "random_leading", "buckets", "weights", "changes")}  # fmt: skip
        counts = {"pages": self.pages, "skipped": self.skipped, "distinct": self.distinct}
        return {**counts, **arrays, "spikes": [spike.as_dict() for spike in self.spikes]}


@dataclass(slots=True)
class DistributionCounter:
    """Counters that are updated page by page. They take about 200 bytes per distinct fingerprint."""

    counts: Counter[int] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    weights: NDArray[np.int64] = field(default_factory=lambda: np.zeros(STEPS, np.int64))
    changes: NDArray[np.int64] = field(default_factory=lambda: np.zeros(STEPS, np.int64))
    _names: dict[int, tuple[str, str | None]] = field(default_factory=dict)
    _last: NDArray[np.float64] | None = None

    def add_page(self, page: Page, signatures: Signatures) -> None:
        """Count a page. Raises OverLimit if the settings reject pages over a limit."""
        signature = signatures.of(page)
        if signature.fingerprint is None:
            self.skipped[signature.skipped or "no fingerprint"] += 1
            return
        value = signature.fingerprint.value
        self.counts[value] += 1
        if self.counts[value] == 2:  # Most fingerprints occur once and need no name.
            _, tokens = signatures.text_and_tokens(page)
            self._names[value] = page.url, name_of(tokens.words())
        weights = scaled(signature.fingerprint.weights[None, :].astype(float))[0]
        self.weights += _histogram(weights)
        if self._last is not None:
            self.changes += _histogram(weights - self._last)
        self._last = weights

    def add_fingerprints(self, fingerprints: NDArray[np.uint64]) -> None:
        """Count pages of which only fingerprints are available."""
        self.counts.update(fingerprints.tolist())

    def distribution(self, *, spikes: int = 10, seed: int = 0) -> Distribution:
        """Return all counts. `spikes` is the number of spikes to list."""
        keys = np.array(sorted(self.counts), np.uint64)
        counts = np.array([self.counts[key] for key in keys.tolist()], np.int64)
        random = np.unique(np.random.default_rng(seed).integers(0, 2**BITS, keys.size, dtype=np.uint64))
        buckets = np.zeros(1 << BUCKET_BITS, np.int64)
        np.add.at(buckets, (keys >> np.uint64(BITS - BUCKET_BITS)).astype(np.int64), counts)
        crowded = [(value, count) for value, count in self.counts.most_common(spikes) if count > 1]
        return Distribution(
            pages=int(counts.sum()) + self.skipped.total(),
            skipped=dict(self.skipped.most_common()),
            distinct=keys.size,
            leading=leading_ones(keys),
            random_leading=leading_ones(random),
            buckets=buckets,
            weights=self.weights,
            changes=self.changes,
            spikes=[Spike(value, count, *self._names.get(value, ("", None))) for value, count in crowded],
        )


def leading_ones(keys: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Count the positions of the leading 1 in the XOR of neighbours, for sorted keys without repeats."""
    counts = np.zeros(BITS, np.int64)
    if keys.size > 1:
        count_positions(keys, 0, keys.size, counts)
    return counts


def _histogram(weights: NDArray[np.float64]) -> NDArray[np.int64]:
    places = ((weights + REACH) * (STEPS / (2 * REACH))).astype(np.int64)
    return np.bincount(np.clip(places, 0, STEPS - 1), minlength=STEPS)
