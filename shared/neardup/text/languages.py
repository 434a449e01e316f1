"""Stop words of some languages, language detection by stop words, and Snowball stems, cached per distinct word."""

import threading
from functools import cache
from typing import Any, Final

import numpy as np
import Stemmer
from numpy.typing import NDArray

from neardup.errors import SettingsError
from neardup.kernels.common.murmur import SLACK, hash_token
from neardup.kernels.signatures.shingling import marks, word_table
from neardup.text.normalization import composed, decomposed
from neardup.text.tokens import Tokens, tokens_of_text

STOP_WORDS: Final[dict[str, str]] = {
    "danish": "og i det at en den til er som på de med han af for ikke der var et har jeg men vi fra om",
    "dutch": "de het een en van in is dat op te zijn voor met niet aan er om ook als bij maar dan door nog naar hij",
    "english": "the of and to in a is that for it on with as was be by are at from this or an have not but they his"
    " which you were had has their its will been there would can if more when who so no said what up about into",
    "french": "le la les de des du un une et est que qui dans pour pas sur au par avec ce il elle ne se plus son sa",
    "german": "der die das und in den von zu mit sich des auf für ist im dem nicht ein eine als auch es an werden aus",
    "italian": "il lo la i gli le di che e un una per in non con del della dei si da al come sono ma più anche nel",
    "norwegian": "og i det er på en til som av for at med var han ikke den har om et fra men vi seg jeg ble",
    "portuguese": "o a os as de que e do da em um uma para com não por se na no dos das mais ao como mas foi ele",
    "russian": "и в не на что с он я как это по но они к у из за от так же о для бы было ее то все",
    "spanish": "el la los las de que y en un una por con no para es su del se al lo como más pero sus le ya o este",
    "swedish": "och i att det som en på är av för med den till inte om ett han var men jag från vi så har de",
}
"""The most frequent words of each language. They identify the language, and can be dropped from fingerprints."""

_MOST_STEMS: Final = 1_000_000

_TABLE_BITS: Final = 12
"""Bits of a slot number. 4096 slots are ten per stop word of all languages together, and fit the L1 cache."""


class WordSet:
    """A fixed set of words, for membership tests of tokens."""

    def __init__(self, words: str) -> None:
        self.hashes: Final[NDArray[np.uint64]] = np.unique(tokens_of_text(words).hashes)
        self._table = word_table(self.hashes, _TABLE_BITS)

    def among(self, hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Return for each token whether it is in the set."""
        found: NDArray[np.bool_] = marks(self._table, _TABLE_BITS, hashes)
        return found


@cache
def stop_words(language: str | None = None) -> WordSet:
    """Return the stop words of a language, or of all languages. Raises SettingsError for a language without a list."""
    if language is None:
        return WordSet(" ".join(STOP_WORDS.values()))
    if language not in STOP_WORDS:
        raise SettingsError(f"expected one of {', '.join(STOP_WORDS)}, got {language!r}")
    return WordSet(STOP_WORDS[language])


def language_of(hashes: NDArray[np.uint64]) -> str | None:
    """Return the language with the most stop words among the tokens, or None if they are at most 5% of the tokens."""
    counts = {language: int(stop_words(language).among(hashes).sum()) for language in STOP_WORDS}
    best = max(counts, key=lambda language: counts[language])
    return best if counts[best] * 20 > hashes.size else None


class Stems:
    """A stemmer that replaces the hashes of tokens by the hashes of their stems. Safe to share between threads."""

    def __init__(self, language: str) -> None:
        """Use the Snowball stemmer of a language. Raises SettingsError if there is none."""
        if language not in Stemmer.algorithms():
            raise SettingsError(f"expected one of {', '.join(sorted(Stemmer.algorithms()))}, got {language!r}")
        self._stemmer: Any = Stemmer.Stemmer(language)
        self._stems: dict[int, int] = {}
        self._lock = threading.Lock()

    def of(self, tokens: Tokens) -> NDArray[np.uint64]:
        """Return the hash of each token's stem."""
        distinct, first, place = np.unique(tokens.hashes, return_index=True, return_inverse=True)
        stems = np.empty_like(distinct)
        with self._lock:
            if len(self._stems) > _MOST_STEMS:
                self._stems.clear()
            for i, known in enumerate(distinct.tolist()):
                stem = self._stems.get(known)
                if stem is None:
                    stem = self._stems[known] = self._stem(tokens.word(int(first[i])))
                stems[i] = stem
        found: NDArray[np.uint64] = stems[place]
        return found

    def _stem(self, word: str) -> int:
        # Snowball expects composed letters, whereas tokens are decomposed.
        stem = self._stemmer.stemWord(composed(word))
        data = np.frombuffer(decomposed(stem).encode() + bytes(SLACK), dtype=np.uint8)
        return int(hash_token(data, 0, data.size - SLACK))


def stemmer_version() -> str:
    """Return the release of the stemmers. It is part of the signature version, as another may stem differently."""
    return str(Stemmer.version())
