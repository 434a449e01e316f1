"""Hosts of a generated crawl, each with a language, a few topics, a charset and templates."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from neardup.sample.article import Article, write
from neardup.sample.languages import LANGUAGES, Language
from neardup.sample.template import Template, make_bare_template, make_template
from neardup.sample.vocabulary import TOPICS, Vocabulary, vocabulary

HOSTS: Final = 120
"""Number of hosts that are crawled at a time."""
PAGES_A_HOST: Final = 1000
"""Mean number of pages per host before another host replaces it. Without replacement, a long crawl would consist mostly
of pages in known templates.
"""

_LEGACY: Final = 0.25
"""Share of hosts that use the legacy charset of their language, if it has one."""
_HEAVY: Final = 0.2
"""Share of hosts with much boilerplate."""
_SESSIONS: Final = 0.5
_LIGHT_WORDS: Final = (30, 60)
_HEAVY_WORDS: Final = (150, 300)
_ERROR_WORDS: Final = (90, 140)
_MARKUP_SPREAD: Final = 0.5

LEAST_WORDS: Final = 200
LEAST_WORDS_OF_HEAVY: Final = 300
"""Minimum length of articles on hosts with much boilerplate. Shorter articles would make any two pages of the host
near-duplicates.
"""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Host:
    """A host of the crawl.

    `error` is the text of its error pages, and `charset_in_header` is true if its server declares the charset.
    """

    name: str
    language: Language
    vocabularies: tuple[Vocabulary, ...]
    charset: str
    charset_in_header: bool
    template: Template
    bare: Template
    error: Article
    least_words: int

    @property
    def content_type(self) -> str:
        """The Content-Type header of its server."""
        return f"text/html; charset={self.charset}" if self.charset_in_header else "text/html"


class Hosts:
    """The hosts of a crawl, created on first use. A host depends only on the seed and its number.

    A fixed number of hosts is crawled at a time. They retire one after the other, and a new host takes over the rank.
    """

    def __init__(self, seed: int, markup_bytes: float) -> None:
        self._seed = seed
        self._markup_bytes = markup_bytes
        self._hosts: dict[int, Host] = {}
        self._current = list(range(HOSTS))
        """Number of the host at each rank."""
        self._retired = 0

    def at_page(self, number: int) -> None:
        """Update the current hosts for the page with this number."""
        while self._retired <= number // PAGES_A_HOST - HOSTS:
            place = self._retired % HOSTS
            self._hosts.pop(self._current[place], None)
            self._current[place] += HOSTS
            self._retired += 1

    def in_place(self, place: int) -> Host:
        """Return the current host at a rank."""
        return self[self._current[place]]

    def __getitem__(self, number: int) -> Host:
        if number not in self._hosts:
            self._hosts[number] = _make_host(number, np.random.default_rng([self._seed, number]), self._markup_bytes)
        return self._hosts[number]

    def numbers_in(self, language: Language) -> list[int]:
        """Return the numbers of the current hosts with this language."""
        return [number for number in self._current if _language(number) is language]


def _language(number: int) -> Language:
    """Return the language of a host: the first language for every second host, the others in turn."""
    return LANGUAGES[0] if number % 2 == 0 else LANGUAGES[1 + number // 2 % (len(LANGUAGES) - 1)]


def _make_host(number: int, rng: np.random.Generator, markup_bytes: float) -> Host:
    language = _language(number)
    charset = language.charset if language.charset is not None and rng.random() < _LEGACY else "utf-8"
    topics = rng.choice(TOPICS, 2, replace=False).tolist()
    vocabularies = tuple(vocabulary(language, topic) for topic in topics)
    heavy = rng.random() < _HEAVY
    words = int(rng.integers(*(_HEAVY_WORDS if heavy else _LIGHT_WORDS)))
    size = markup_bytes * rng.lognormal(-(_MARKUP_SPREAD**2) / 2, _MARKUP_SPREAD)
    return Host(
        name=f"{language.code}{number}.example",
        language=language,
        vocabularies=vocabularies,
        charset=charset,
        charset_in_header=bool(rng.random() < 0.5),
        template=make_template(
            vocabularies[0],
            rng,
            charset=charset,
            words=words,
            markup_bytes=int(size),
            sessions=bool(rng.random() < _SESSIONS),
        ),
        bare=make_bare_template(vocabularies[0], rng, charset=charset),
        error=write(vocabularies[0], rng, int(rng.integers(*_ERROR_WORDS))),
        least_words=LEAST_WORDS_OF_HEAVY if heavy else LEAST_WORDS,
    )
