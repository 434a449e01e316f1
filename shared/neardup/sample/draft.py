"""A page in the making, and what the makers of pages draw from."""

import random
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from neardup.sample.article import Article, write
from neardup.sample.hosts import HOSTS, Host, Hosts
from neardup.sample.template import Dressing, ads_beside

_SPREAD: Final = 0.8
"""Sigma of the log-normal sizes of articles."""
_MOST_TIMES_MEAN: Final = 30


@dataclass(slots=True, kw_only=True)
class Draft:
    """A page before it is rendered, with its truth.

    `host` is whose template, charset and server it has; the url may be of another one. `fresh` are the parts of the
    article that no earlier page has, as (start, end); pages made later may have such a part alone. `versions` counts
    how often the page has drifted, and `now` is what it has drifted to.
    """

    kind: str
    url: str
    host: Host
    article: Article
    dressing: Dressing
    bare: bool = False
    duplicate_of: int | None = None
    duplicate: bool | None = False
    resemblance: float | None = None
    holds: tuple[int, ...] = ()
    number: int = -1
    fresh: list[tuple[int, int]] = field(default_factory=list)
    versions: int = 1
    now: Article | None = None

    def html(self) -> bytes:
        """The page's bytes, the same whenever it is asked."""
        template = self.host.bare if self.bare else self.host.template
        return template.render(self.article, self.dressing).encode(self.host.charset, "xmlcharrefreplace")


@dataclass(slots=True)
class Chance:
    """All that is random or rising in a crawl: its two generators, its hosts and the date of the next fetch."""

    rng: np.random.Generator
    draw: random.Random
    hosts: Hosts
    article_bytes: float
    date: str = ""
    _urls: int = 0

    def host(self) -> Host:
        """One of the hosts, the first ones oftener, as sizes of hosts go."""
        return self.hosts.in_place(int(HOSTS * self.draw.random() ** 2))

    def host_of_same_language(self, host: Host) -> Host:
        """Another host in that language."""
        while (other := self.hosts[self.draw.choice(self.hosts.numbers_in(host.language))]) is host:
            pass
        return other

    def url(self, host: Host, query: str = "") -> str:
        """A url of that host that was not used before."""
        self._urls += 1
        return f"https://{host.name}/{self.draw.randrange(100)}/{self._urls}.html{query}"

    def article(self, host: Host) -> Article:
        """A new article in a topic of that host."""
        vocabulary = self.draw.choice(host.vocabularies)
        mean = self.article_bytes / vocabulary.bytes_per_word
        words = self.draw.lognormvariate(-(_SPREAD**2) / 2, _SPREAD) * mean
        return write(vocabulary, self.rng, int(min(max(words, host.least_words), _MOST_TIMES_MEAN * mean)))

    def dressing(self, host: Host, article: Article) -> Dressing:
        """The dressing of a fetch now."""
        return Dressing(
            ads=self.ads(host, ads_beside(article)),
            counter=self.draw.randrange(10**6),
            date=self.date,
            session=self.session(),
        )

    def ads(self, host: Host, count: int) -> tuple[int, ...]:
        """So many ads out of the host's pool."""
        return tuple(self.draw.choices(range(len(host.template.ads)), k=count))

    def session(self) -> str:
        """A new session id."""
        return f"{self.draw.getrandbits(64):016x}"
