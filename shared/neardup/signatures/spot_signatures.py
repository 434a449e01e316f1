"""Spot signatures (lecture V.5.2): short chains of words, each anchored at a stop word.

Stop words stand in running text, seldom in navigation, so these features see the core of a page and not its frame.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from neardup.kernels.signatures.shingling import common_counted, counted, spots
from neardup.text.languages import stop_words
from neardup.text.tokens import Tokens
from neardup.util.scratch import SALT


@dataclass(frozen=True, slots=True)
class SpotSignatures:
    """A bag of spot signatures: sorted hashes and how often each occurs."""

    hashes: NDArray[np.uint64]
    counts: NDArray[np.int64]

    @property
    def size(self) -> int:
        """Number of spot signatures, repeats included."""
        return int(self.counts.sum())


def spot_signatures(tokens: Tokens, *, distance: int = 1, chain: int = 2) -> SpotSignatures:
    """Return the signature of each stop word: the word and `chain` following words that are no stop words."""
    stop = stop_words().among(tokens.hashes)
    hashes, counts = counted(spots(tokens.hashes, stop, distance, chain), SALT)
    order = np.argsort(hashes)
    return SpotSignatures(hashes[order], counts[order])


def spot_resemblance(a: SpotSignatures, b: SpotSignatures) -> float:
    """Jaccard coefficient of the two bags: sum of the lesser counts over sum of the greater."""
    shared = common_counted(a.hashes, a.counts, b.hashes, b.counts)
    union = a.size + b.size - shared
    return shared / union if union else 1.0


def can_resemble(a: int, b: int, threshold: float) -> bool:
    """Return True if bags of these sizes can reach the threshold: r ≤ min / max, so most pairs need no comparison."""
    return min(a, b) >= threshold * max(a, b)


def length_partitions(longest: int, threshold: float) -> list[int]:
    """Sizes at which to cut documents into partitions so that only neighbours can resemble.

    A partition from n to below n / threshold: whatever is two partitions up is longer than the bound allows.
    """
    assert 0 < threshold < 1
    cuts = [1]
    while cuts[-1] <= longest:
        cuts.append(max(int(np.ceil(cuts[-1] / threshold)), cuts[-1] + 1))
    return cuts
