"""w-shingles (Broder 1997, "Defining similarity"): the set S(D, w) of a document, and the similarity of two sets."""

import numpy as np
from numpy.typing import NDArray

from neardup.kernels.signatures.shingling import common, distinct, ngrams
from neardup.text.tokens import Tokens
from neardup.util.scratch import SALT


def shingles_of(tokens: Tokens, w: int) -> NDArray[np.uint64]:
    """Return S(D, w) as hashes, in order of first occurrence. A document shorter than w has one shingle."""
    hashes = tokens.hashes
    found: NDArray[np.uint64] = distinct(ngrams(hashes, max(min(w, hashes.size), 1)), SALT)
    return found


def resemblance(a: NDArray[np.uint64], b: NDArray[np.uint64]) -> float:
    """Return |A ∩ B| / |A ∪ B|, which is 1 for two empty sets."""
    shared = common(np.sort(a), np.sort(b))
    union = a.size + b.size - shared
    return shared / union if union else 1.0


def containment(a: NDArray[np.uint64], b: NDArray[np.uint64]) -> float:
    """Return |A ∩ B| / |A|, the share of A that is in B, which is 1 for an empty A."""
    return common(np.sort(a), np.sort(b)) / a.size if a.size else 1.0
