"""w-shingles (Broder 1997, "Defining similarity"): the set S(D, w) of a document, and what two sets have in common."""

import numpy as np
from numpy.typing import NDArray

from neardup.kernels.signatures.shingling import common, distinct, ngrams
from neardup.text.tokens import Tokens
from neardup.util.scratch import SALT


def shingles_of(tokens: Tokens, w: int) -> NDArray[np.uint64]:
    """S(D, w) by hash, in the order of first occurrence. A document shorter than w is one shingle."""
    hashes = tokens.hashes
    found: NDArray[np.uint64] = distinct(ngrams(hashes, max(min(w, hashes.size), 1)), SALT)
    return found


def resemblance(a: NDArray[np.uint64], b: NDArray[np.uint64]) -> float:
    """|A ∩ B| / |A ∪ B|; two empty sets resemble each other fully."""
    shared = common(np.sort(a), np.sort(b))
    union = a.size + b.size - shared
    return shared / union if union else 1.0


def containment(a: NDArray[np.uint64], b: NDArray[np.uint64]) -> float:
    """|A ∩ B| / |A|: how much of A is in B. Nothing is contained in everything."""
    return common(np.sort(a), np.sort(b)) / a.size if a.size else 1.0
