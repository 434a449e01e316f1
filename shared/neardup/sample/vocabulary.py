"""Vocabularies of one language and topic, with words drawn in bulk by Zipf's law.

Topics of a language share its common words but rank the other words differently. Unrelated pages of a topic therefore
share many words but hardly any phrase.
"""

import random
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from neardup.sample.languages import LEXICON, Language, lexicon

TOPICS: Final = 12
TOPIC_WORDS: Final = 2000
"""Number of words that a topic takes from the lexicon of its language, besides the common words."""

PARAGRAPH: Final = "\0"
"""Separator of paragraphs in generated text, which a template replaces with markup."""

PLAIN, COMMA, STOP, LAST, CAPITAL = range(5)
"""Typography of a word: plain, before a comma, at the end of a sentence or paragraph, at the start of a sentence."""

_DRAWS: Final = 2**16  # two random bytes
_COMMON_SHARE: Final = 0.35
_EXPONENT: Final = 1.0


class Vocabulary:
    """The words of one topic. A *form* is a word and its typography as one number: `word + size · way`."""

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
        """Draw random words with the frequencies of Zipf's law."""
        drawn: NDArray[np.int32] = self._by_chance[np.frombuffer(rng.bytes(2 * count), dtype="<u2")]
        return drawn

    def text(self, forms: NDArray[np.int32]) -> str:
        """Return the text of forms."""
        return "".join(self._forms[forms].tolist())

    def words(self, forms: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the words of forms, without their typography."""
        return forms % np.int32(self.size)


@cache
def vocabulary(language: Language, topic: int) -> Vocabulary:
    """Return the vocabulary of a topic, created once."""
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
    """Return the word for each of _DRAWS equally likely random numbers, so that a draw is a lookup and not a search."""
    weights = np.empty(size)
    for part, share in ((slice(0, common), _COMMON_SHARE), (slice(common, size), 1 - _COMMON_SHARE)):
        zipf = 1.0 / np.arange(1, weights[part].size + 1) ** _EXPONENT
        weights[part] = share * zipf / zipf.sum()
    edges = np.cumsum(weights)
    places = (np.arange(_DRAWS) + 0.5) / _DRAWS
    return np.minimum(np.searchsorted(edges, places), size - 1).astype(np.int32)
