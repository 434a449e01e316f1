"""The main text of a page as an array of word numbers: generation, edits, parts, and true resemblance."""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from neardup.sample.vocabulary import CAPITAL, COMMA, LAST, STOP, Vocabulary

_SENTENCE: Final = (6, 24)
_PARAGRAPH_SENTENCES: Final = 5
_WORDS_PER_COMMA: Final = 14


@dataclass(frozen=True, slots=True, eq=False)
class Article:
    """A text in one vocabulary. `forms` are its words with their typography, in order."""

    vocabulary: Vocabulary
    forms: NDArray[np.int32]

    def __len__(self) -> int:
        return self.forms.size

    @property
    def text(self) -> str:
        """The text, with PARAGRAPH after every paragraph; it may be missing after the last one."""
        return self.vocabulary.text(self.forms)

    def part(self, start: int, end: int) -> "Article":
        """Return the words from `start` up to but not including `end`."""
        return replace(self, forms=self.forms[start:end])


def write(vocabulary: Vocabulary, rng: np.random.Generator, words: int) -> Article:
    """Generate an article of at least one sentence."""
    forms = vocabulary.draw(rng, words)
    size = np.int32(vocabulary.size)
    ends = np.cumsum(rng.integers(*_SENTENCE, words // _SENTENCE[0] + 1)) - 1
    ends = ends[: int(np.searchsorted(ends, words - 1))]
    ways = np.zeros(words, dtype=np.int32)
    ways[rng.integers(0, words, words // _WORDS_PER_COMMA)] = COMMA
    ways[ends] = STOP
    ways[ends[_PARAGRAPH_SENTENCES - 1 :: _PARAGRAPH_SENTENCES]] = LAST
    ways[ends + 1] = CAPITAL
    ways[0], ways[-1] = CAPITAL, LAST
    return Article(vocabulary, forms + ways * size)


def joined(parts: list[Article]) -> Article:
    """Concatenate articles of the same vocabulary."""
    assert len({id(part.vocabulary) for part in parts}) == 1
    return Article(parts[0].vocabulary, np.concatenate([part.forms for part in parts]))


def with_words_changed(article: Article, rng: np.random.Generator, count: int) -> Article:
    """Replace the words at `count` positions and keep their typography."""
    vocabulary = article.vocabulary
    places = rng.integers(0, len(article), count)
    forms = article.forms.copy()
    forms[places] += vocabulary.draw(rng, count) - vocabulary.words(forms[places])
    return replace(article, forms=forms)


def with_sentence_added(article: Article, rng: np.random.Generator, words: int) -> Article:
    """Insert a new sentence at a random position."""
    place = int(rng.integers(0, len(article)))
    added = write(article.vocabulary, rng, words).forms
    return replace(article, forms=np.concatenate((article.forms[:place], added, article.forms[place:])))


def with_stretch_rewritten(article: Article, rng: np.random.Generator, share: float) -> Article:
    """Replace a random stretch, a `share` of the article, by new text."""
    length = max(1, int(share * len(article)))
    place = int(rng.integers(0, len(article) - length + 1))
    fresh = write(article.vocabulary, rng, length).forms
    return replace(article, forms=np.concatenate((article.forms[:place], fresh, article.forms[place + length :])))


def resemblance(a: Article, b: Article) -> float:
    """Return the resemblance of the sets of shingles of three words (Broder 1997)."""
    first, second = _shingles(a), _shingles(b)
    together = np.sort(np.concatenate((first, second)))
    shared = int(np.count_nonzero(together[1:] == together[:-1]))
    return shared / (first.size + second.size - shared)


def _shingles(article: Article) -> NDArray[np.int64]:
    size = article.vocabulary.size  # Its third power fits in 64 bits, so a shingle needs no hash.
    words = article.vocabulary.words(article.forms).astype(np.int64)
    shingles = np.sort((words[:-2] * size + words[1:-1]) * size + words[2:])
    first = np.ones(shingles.size, dtype=np.bool_)
    np.not_equal(shingles[1:], shingles[:-1], out=first[1:])
    return shingles[first]  # Ten times faster than np.unique.
