"""Unfinished pages, and the random generators from which they are made."""

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
    """A page before rendering, with its truth.

    `host` determines the template, the charset and the server; the URL may belong to another host. `fresh` lists the
    parts of the article that no earlier page has, as (start, end); a later page may consist of such a part. `versions`
    counts the versions of a page that is edited repeatedly, and `now` is its present article.
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
        """Return the bytes of the page, which are the same for each call."""
        template = self.host.bare if self.bare else self.host.template
        return template.render(self.article, self.dressing).encode(self.host.charset, "xmlcharrefreplace")


@dataclass(slots=True)
class Chance:
    """The state of a crawl: its random generators, its hosts and the date of the next fetch."""

    rng: np.random.Generator
    draw: random.Random
    hosts: Hosts
    article_bytes: float
    date: str = ""
    _urls: int = 0

    def host(self) -> Host:
        """Return a random host. Hosts with lower ranks are more frequent, following typical sizes of hosts."""
        return self.hosts.in_place(int(HOSTS * self.draw.random() ** 2))

    def host_of_same_language(self, host: Host) -> Host:
        """Return another host with the same language."""
        while (other := self.hosts[self.draw.choice(self.hosts.numbers_in(host.language))]) is host:
            pass
        return other

    def url(self, host: Host, query: str = "") -> str:
        """Return a new URL on the host."""
        self._urls += 1
        return f"https://{host.name}/{self.draw.randrange(100)}/{self._urls}.html{query}"

    def article(self, host: Host) -> Article:
        """Return a new article about a topic of the host."""
        vocabulary = self.draw.choice(host.vocabularies)
        mean = self.article_bytes / vocabulary.bytes_per_word
        words = self.draw.lognormvariate(-(_SPREAD**2) / 2, _SPREAD) * mean
        return write(vocabulary, self.rng, int(min(max(words, host.least_words), _MOST_TIMES_MEAN * mean)))

    def dressing(self, host: Host, article: Article) -> Dressing:
        """Return the dressing of a fetch at the present time."""
        return Dressing(
            ads=self.ads(host, ads_beside(article)),
            counter=self.draw.randrange(10**6),
            date=self.date,
            session=self.session(),
        )

    def ads(self, host: Host, count: int) -> tuple[int, ...]:
        """Draw `count` advertisements from the pool of the host."""
        return tuple(self.draw.choices(range(len(host.template.ads)), k=count))

    def session(self) -> str:
        """Return a new session id."""
        return f"{self.draw.getrandbits(64):016x}"
