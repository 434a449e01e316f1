"""The hosts of a made crawl, each with a language, a few topics, its charset and its templates."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from neardup.sample.article import Article, write
from neardup.sample.languages import LANGUAGES, Language
from neardup.sample.template import Template, make_bare_template, make_template
from neardup.sample.vocabulary import TOPICS, Vocabulary, vocabulary

HOSTS: Final = 120
"""That are crawled at a time."""
PAGES_A_HOST: Final = 1000
"""On average, then another host takes its place: a crawl that stayed with its hosts would find ever more pages by each
of their templates."""

_LEGACY: Final = 0.25
"""Share of hosts that still use the old charset of their language, where it has one."""
_HEAVY: Final = 0.2
"""Share of hosts with a lot of boilerplate."""
_SESSIONS: Final = 0.5
_LIGHT_WORDS: Final = (30, 60)
_HEAVY_WORDS: Final = (150, 300)
_ERROR_WORDS: Final = (90, 140)
_MARKUP_SPREAD: Final = 0.5

LEAST_WORDS: Final = 200
LEAST_WORDS_OF_HEAVY: Final = 300
"""No article is shorter than its host's boilerplate: otherwise every two pages of the host would be near-duplicates."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Host:
    """A host. `error` is the text of its error pages, `charset_in_header` whether its server tells the charset."""

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
        """As its server says it."""
        return f"text/html; charset={self.charset}" if self.charset_in_header else "text/html"


class Hosts:
    """The hosts of a crawl, each made when it is first asked for. A host depends on the seed and its number alone.

    As many as there are places are crawled at a time. They come to an end one after the other, and the next host with
    the same rank takes the place.
    """

    def __init__(self, seed: int, markup_bytes: float) -> None:
        self._seed = seed
        self._markup_bytes = markup_bytes
        self._hosts: dict[int, Host] = {}
        self._current = list(range(HOSTS))
        """The number of the host in each place."""
        self._retired = 0

    def at_page(self, number: int) -> None:
        """Who is crawled when the crawl has come to this page."""
        while self._retired <= number // PAGES_A_HOST - HOSTS:
            place = self._retired % HOSTS
            self._hosts.pop(self._current[place], None)
            self._current[place] += HOSTS
            self._retired += 1

    def in_place(self, place: int) -> Host:
        """The host that is there now."""
        return self[self._current[place]]

    def __getitem__(self, number: int) -> Host:
        if number not in self._hosts:
            self._hosts[number] = _make_host(number, np.random.default_rng([self._seed, number]), self._markup_bytes)
        return self._hosts[number]

    def numbers_in(self, language: Language) -> list[int]:
        """The hosts in that language that are crawled now."""
        return [number for number in self._current if _language(number) is language]


def _language(number: int) -> Language:
    """Half of the hosts are in the first language, as on the web; in the other half, the others take turns."""
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
