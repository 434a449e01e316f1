"""Spot signatures (lecture V.5.2): short chains of words, each anchored at a stop word.

Stop words are frequent in running text and rare in navigation, so spot signatures represent the main text of a page.
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
    """A bag of spot signatures: sorted hashes and the count of each."""

    hashes: NDArray[np.uint64]
    counts: NDArray[np.int64]

    @property
    def size(self) -> int:
        """Number of spot signatures, including repeats."""
        return int(self.counts.sum())


def spot_signatures(tokens: Tokens, *, distance: int = 1, chain: int = 2) -> SpotSignatures:
    """Return the signature of each stop word: the word and `chain` following words that are no stop words."""
    stop = stop_words().among(tokens.hashes)
    hashes, counts = counted(spots(tokens.hashes, stop, distance, chain), SALT)
    order = np.argsort(hashes)
    return SpotSignatures(hashes[order], counts[order])


def spot_resemblance(a: SpotSignatures, b: SpotSignatures) -> float:
    """Return the Jaccard coefficient of two bags: the sum of the smaller counts over the sum of the larger counts."""
    shared = common_counted(a.hashes, a.counts, b.hashes, b.counts)
    union = a.size + b.size - shared
    return shared / union if union else 1.0


def can_resemble(a: int, b: int, threshold: float) -> bool:
    """Return True if bags of these sizes can reach the threshold: resemblance is at most min(a, b) / max(a, b)."""
    return min(a, b) >= threshold * max(a, b)


def length_partitions(longest: int, threshold: float) -> list[int]:
    """Return the sizes at which to partition documents so that only documents of neighbouring partitions can resemble.

    A partition contains the sizes from n to below n / threshold. A document two partitions higher is so long that its
    resemblance is below the threshold.
    """
    assert 0 < threshold < 1
    cuts = [1]
    while cuts[-1] <= longest:
        cuts.append(max(int(np.ceil(cuts[-1] / threshold)), cuts[-1] + 1))
    return cuts
