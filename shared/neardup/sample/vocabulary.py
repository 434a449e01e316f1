"""What pages of one language about one topic are written with: words by Zipf's law, drawn in bulk.

Topics of a language share its common words and rank the others differently, so that unrelated pages of a topic share
many words and hardly a phrase.
"""

import random
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from neardup.sample.languages import LEXICON, Language, lexicon

TOPICS: Final = 12
TOPIC_WORDS: Final = 2000
"""Words of a topic out of its language's lexicon."""

PARAGRAPH: Final = "\0"
"""Stands between paragraphs in made text; a template puts its markup there."""

PLAIN, COMMA, STOP, LAST, CAPITAL = range(5)
"""How a word is written: as it is, before a comma, at the end of a sentence or paragraph, at the start."""

_DRAWS: Final = 2**16  # two random bytes
_COMMON_SHARE: Final = 0.35
_EXPONENT: Final = 1.0


class Vocabulary:
    """The words of one topic. A *form* is a word and how it is written, as one number: `word + size · way`."""

    def __init__(self, language: Language, topic: int) -> None:
        draw = random.Random(f"topic {topic} of {language.code}")  # noqa: S311
        words = lexicon(language)
        common = len(language.common)
        chosen = [*range(common), *(common + each for each in draw.sample(range(LEXICON), TOPIC_WORDS))]
        self.language = language
        self.size = len(chosen)
        self._forms = _written([words[each] for each in chosen], language)
        self._by_chance = _quantiles(common, self.size)
        lengths = np.array([len(form.encode()) for form in self._forms[: self.size]])
        self.bytes_per_word = float(lengths[self._by_chance].mean())

    def draw(self, rng: np.random.Generator, count: int) -> NDArray[np.int32]:
        """Words by chance, each as often as Zipf's law has it."""
        drawn: NDArray[np.int32] = self._by_chance[np.frombuffer(rng.bytes(2 * count), dtype="<u2")]
        return drawn

    def text(self, forms: NDArray[np.int32]) -> str:
        """The text that forms are written as."""
        return "".join(self._forms[forms].tolist())

    def words(self, forms: NDArray[np.int32]) -> NDArray[np.int32]:
        """The words of forms, however they are written."""
        return forms % np.int32(self.size)


@cache
def vocabulary(language: Language, topic: int) -> Vocabulary:
    """The vocabulary of a topic, made once."""
    return Vocabulary(language, topic)


def _written(words: list[str], language: Language) -> NDArray[np.object_]:
    space, stop = language.space, language.stop
    ways = (
        [word + space for word in words],
        [word + language.comma + space for word in words],
        [word + stop + space for word in words],
        [word + stop + PARAGRAPH for word in words],
        [word.capitalize() + space for word in words],
    )
    return np.array([form for way in ways for form in way], dtype=object)


def _quantiles(common: int, size: int) -> NDArray[np.int32]:
    """Which word the n-th of _DRAWS equally likely draws is: one look-up a word instead of a search."""
    weights = np.empty(size)
    for part, share in ((slice(0, common), _COMMON_SHARE), (slice(common, size), 1 - _COMMON_SHARE)):
        zipf = 1.0 / np.arange(1, weights[part].size + 1) ** _EXPONENT
        weights[part] = share * zipf / zipf.sum()
    edges = np.cumsum(weights)
    places = (np.arange(_DRAWS) + 0.5) / _DRAWS
    return np.minimum(np.searchsorted(edges, places), size - 1).astype(np.int32)
