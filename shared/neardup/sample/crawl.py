"""The generated crawl: a stream of any number of pages with their truth, in bounded memory."""

import random
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from typing import Final

import numpy as np

from neardup.sample.changes import CHANGES, drift, original
from neardup.sample.draft import Chance, Draft
from neardup.sample.hosts import Hosts
from neardup.sample.trouble import ERROR_PAGES, SKIPPED_PAGES, error_page, skipped_page
from neardup.sample.truth import Truth
from neardup.types import Page

MEAN_BYTES: Final = 20_000
LEAST_MEAN_BYTES: Final = 8_000
"""Minimum mean size of a page in bytes. Articles have at least a few hundred words, which need this size."""

_POOL: Final = 1_000
"""Number of earlier pages from which later ones are made. A page that has left the pool is not repeated again."""
_DRIFTING: Final = 20
"""Number of pages in the pool that are edited repeatedly. It is small so that each page gets many versions."""

_FIXED_BYTES: Final = 1000
"""Bytes of navigation and other fixed parts of a page. The shares of the remaining bytes below were measured."""
_ARTICLE_SHARE: Final = 0.58
_MARKUP_SHARE: Final = 0.55
_START: Final = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Sampled:
    """A page and its truth."""

    page: Page
    truth: Truth


def sample_crawl(pages: int, seed: int = 1, mean_bytes: int = MEAN_BYTES) -> Iterator[Sampled]:
    """Yield `pages` pages. Equal arguments give equal pages, and a longer crawl starts with the pages of a shorter one.

    Truth n describes page n, counted from 0, and refers only to earlier pages.
    """
    assert mean_bytes >= LEAST_MEAN_BYTES
    rng = np.random.default_rng(seed)
    room = mean_bytes - _FIXED_BYTES
    hosts = Hosts(seed, _MARKUP_SHARE * room)
    chance = Chance(rng, random.Random(seed), hosts, _ARTICLE_SHARE * room)  # noqa: S311
    makers = list(CHANGES)
    edges = [edge / 100 for edge in accumulate((SKIPPED_PAGES, ERROR_PAGES, *CHANGES.values()))]
    pool: list[Draft] = []
    first_errors: dict[str, int] = {}
    fetched = _START
    for number in range(pages):
        hosts.at_page(number)
        fetched += timedelta(milliseconds=chance.draw.randint(1, 2000))
        fetched_at = fetched.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        chance.date = fetched_at[:16].replace("T", " ")
        pick = bisect_right(edges, chance.draw.random())
        if pick == 0:
            kind, page = skipped_page(chance.host(), chance, fetched_at)
            yield Sampled(page, Truth(url=page.url, number=number, fetched_at=fetched_at, kind=kind, duplicate=None))
            continue
        if pick == 1:
            host = chance.host()
            draft = error_page(host, chance, first_errors.get(host.name))
            first_errors.setdefault(host.name, number)
        elif pick - 2 < len(makers) and pool:
            maker = makers[pick - 2]
            known = min(len(pool), _DRIFTING) if maker is drift else len(pool)
            draft = maker(pool[chance.draw.randrange(known)], chance)
        else:
            draft = original(chance)
        draft.number = number
        if draft.fresh:
            _remember(draft, pool, chance)
        yield _sampled(draft, fetched_at)


def _remember(draft: Draft, pool: list[Draft], chance: Chance) -> None:
    if len(pool) < _POOL:
        pool.append(draft)
    else:
        pool[chance.draw.randrange(_POOL)] = draft


def _sampled(draft: Draft, fetched_at: str) -> Sampled:
    page = Page(draft.url, html=draft.html(), fetched_at=fetched_at, content_type=draft.host.content_type)
    truth = Truth(
        url=draft.url,
        number=draft.number,
        fetched_at=fetched_at,
        kind=draft.kind,
        duplicate_of=draft.duplicate_of,
        duplicate=draft.duplicate,
        resemblance=draft.resemblance,
        holds=draft.holds,
    )
    return Sampled(page, truth)
