"""Weighted features of a document (Manku 2007 §2 and §5.3): n-grams of words, optionally stemmed, without stop words.

Weights are integers: counts, or multiples of 1/256. Their sums therefore depend neither on order nor on the machine.
"""

from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from neardup.kernels.signatures.shingling import counted, distinct, ngrams
from neardup.signatures.idf import ONE, IdfTable
from neardup.text.languages import Stems, language_of, stemmer_version, stop_words
from neardup.text.tokens import Tokens
from neardup.util.scratch import SALT

PRESENCE: Final = "presence"
TF: Final = "tf"
LOG_TF: Final = "log-tf"
TF_IDF: Final = "tf-idf"
WEIGHTINGS: Final = (PRESENCE, TF, LOG_TF, TF_IDF)

DETECT: Final = "detect"

_MOST_COUNTED: Final = 4096
"""Maximum count of a feature. Further occurrences add no weight, which bounds sums and the table of logarithms."""


@dataclass(frozen=True, slots=True)
class Features:
    """Distinct features, as hashes, and their weights. If `weights` is None, every weight is 1."""

    hashes: NDArray[np.uint64]
    weights: NDArray[np.int64] | None

    def __len__(self) -> int:
        return self.hashes.size


@dataclass(frozen=True, slots=True)
class FeatureChoices:
    """The choice of features and of their weights.

    `language` is the language of stop words and stems: one of `languages.STOP_WORDS`, or "detect".
    """

    phrases: tuple[int, ...] = (1,)
    weighting: str = PRESENCE
    drop_stop_words: bool = False
    stem: bool = False
    language: str = DETECT
    idf: IdfTable | None = None

    def __post_init__(self) -> None:
        assert self.phrases
        assert all(1 <= n <= 8 for n in self.phrases)
        assert self.weighting in WEIGHTINGS
        assert (self.weighting == TF_IDF) == (self.idf is not None)

    @property
    def name(self) -> str:
        """A short name of all choices, for signature versions."""
        parts = ["+".join(map(str, self.phrases)) + "gram", self.weighting]
        if self.idf is not None:
            parts.append(self.idf.checksum)
        if self.drop_stop_words:
            parts.append(f"stop-{self.language}")
        if self.stem:
            parts.append(f"stem-{self.language}-{stemmer_version()}")
        return ",".join(parts)


def features_of(tokens: Tokens, choices: FeatureChoices) -> Features:
    """Return the features of a document. Raises nothing."""
    words = _selected(tokens, choices)
    grams = [words if n == 1 else ngrams(words, n) for n in choices.phrases]
    hashes = grams[0] if len(grams) == 1 else np.concatenate(grams)
    if choices.weighting == PRESENCE:
        return Features(distinct(hashes, SALT), None)
    hashes, counts = counted(hashes, SALT)
    return Features(hashes, _weights(hashes, np.minimum(counts, _MOST_COUNTED), choices))


def _selected(tokens: Tokens, choices: FeatureChoices) -> NDArray[np.uint64]:
    words = tokens.hashes
    if not (choices.stem or choices.drop_stop_words):
        return words
    language = language_of(words) if choices.language == DETECT else choices.language
    if language is None:
        return words
    stop = stop_words(language).among(words) if choices.drop_stop_words else None
    if choices.stem:
        words = _stems(language).of(tokens)
    return words if stop is None else words[~stop]


def _weights(hashes: NDArray[np.uint64], counts: NDArray[np.int64], choices: FeatureChoices) -> NDArray[np.int64]:
    if choices.weighting == TF:
        return counts
    weights: NDArray[np.int64] = _logarithms()[counts]
    if choices.idf is not None:
        weights = weights * choices.idf.weigh(hashes) // ONE
    return weights


@cache
def _logarithms() -> NDArray[np.int64]:
    # 1 + log2(tf) in units of 1/256. No value is near a half, which a test checks, so every libm rounds to the same.
    table: NDArray[np.int64] = np.rint((1 + np.log2(np.arange(1, _MOST_COUNTED + 1))) * ONE).astype(np.int64)
    return np.concatenate([np.zeros(1, dtype=np.int64), table])


@cache
def _stems(language: str) -> Stems:
    return Stems(language)
