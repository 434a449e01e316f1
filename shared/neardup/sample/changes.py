"""The kinds of pages of a generated crawl.

Each function makes a random draft. All functions except `original` derive it from an earlier page.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from neardup.sample.article import (
    Article,
    joined,
    resemblance,
    with_sentence_added,
    with_stretch_rewritten,
    with_words_changed,
    write,
)
from neardup.sample.draft import Chance, Draft
from neardup.sample.hosts import Host
from neardup.sample.template import MARKUPS, Dressing
from neardup.sample.truth import is_duplicate

_SMALL: Final = 0.012
"""Maximum share of words that a small edit changes. Each changed word replaces three shingles."""
_MOST_VERSIONS: Final = 12
_LEAST_PART: Final = 120
_AGENCY_WORDS: Final = 6


def original(chance: Chance) -> Draft:
    """Make a page with new text."""
    host = chance.host()
    return _new("original", chance.url(host), host, chance)


def identical(seen: Draft, chance: Chance) -> Draft:
    """Make a mirror with the same bytes."""
    mirror = chance.draw.randrange(3)
    path = seen.url.split("/", 3)[3]
    return _copy(seen, "identical", f"https://mirror{mirror}-{seen.host.name}/{path}")


def same_text(seen: Draft, chance: Chance) -> Draft:
    """Make a page with the same words in other tags and attributes."""
    markup = (seen.dressing.markup + chance.draw.randrange(1, MARKUPS)) % MARKUPS
    return _redressed(seen, "same-text", replace(seen.dressing, markup=markup), chance)


def other_ads(seen: Draft, chance: Chance) -> Draft:
    """Make a page with other advertisements."""
    ads = chance.ads(seen.host, len(seen.dressing.ads))
    return _redressed(seen, "ad", replace(seen.dressing, ads=ads), chance)


def other_count(seen: Draft, chance: Chance) -> Draft:
    """Make a page with a higher hit counter."""
    counter = seen.dressing.counter + chance.draw.randint(1, 1000)
    return _redressed(seen, "counter", replace(seen.dressing, counter=counter), chance)


def other_time(seen: Draft, chance: Chance) -> Draft:
    """Make a page with the current date."""
    return _redressed(seen, "timestamp", replace(seen.dressing, date=chance.date), chance)


def other_session(seen: Draft, chance: Chance) -> Draft:
    """Make a page with another session id in its URL and links."""
    session = chance.session()
    url = f"{seen.url.partition('?')[0]}?sid={session}"
    return _copy(seen, "session", url, replace(seen.dressing, session=session))


def small_edit(seen: Draft, chance: Chance) -> Draft:
    """Make a page with a few words changed or a sentence added."""
    return _edited(seen, "small-edit", _slightly_changed(seen.article, chance), chance)


def large_edit(seen: Draft, chance: Chance) -> Draft:
    """Make a page with a rewritten stretch and changed words everywhere."""
    share = chance.draw.uniform(0.05, 0.6)
    changed = with_stretch_rewritten(seen.article, chance.rng, share)
    changed = with_words_changed(changed, chance.rng, int(0.02 * len(changed)))
    return _edited(seen, "large-edit", changed, chance)


def drift(seen: Draft, chance: Chance) -> Draft:
    """Make the next version of a page that is edited repeatedly. Only the first few versions are certain duplicates."""
    seen.now = _slightly_changed(seen.now or seen.article, chance)
    seen.versions += 1
    made = _edited(seen, "drift", seen.now, chance)
    made.url = seen.url
    # A version that differs much from the first may still be near the version before: it counts as borderline.
    made.duplicate = made.duplicate or None
    if seen.versions == _MOST_VERSIONS:  # The page returns to its first version.
        seen.versions, seen.now = 1, None
    return made


def archive(seen: Draft, chance: Chance) -> Draft:
    """Make a page with an earlier article between two new ones. It contains the earlier page but is no duplicate."""
    parts = [write(seen.article.vocabulary, chance.rng, max(len(seen.article), _LEAST_PART)) for _ in range(2)]
    parts.insert(1, seen.article)
    article = joined(parts)
    first, second = len(parts[0]), len(parts[0]) + len(parts[1])
    return Draft(
        kind="archive",
        url=chance.url(seen.host),
        host=seen.host,
        article=article,
        dressing=chance.dressing(seen.host, article),
        holds=(seen.number,),
        fresh=[(0, first), (second, len(article))],
    )


def contained(seen: Draft, chance: Chance) -> Draft:
    """Make a page from a part that was new on an earlier page.

    The part is an article of an archive, the whole article as a print view, or its first half.
    """
    start, end = chance.draw.choice(seen.fresh)
    alone = seen.article.part(start, end)
    if len(alone) >= 2 * _LEAST_PART and len(seen.fresh) == 1 and chance.draw.random() < 0.5:
        alone = alone.part(0, len(alone) // 2)
    made = _copy(seen, "contained", chance.url(seen.host, "?print=1"))
    made.article, made.bare, made.resemblance = alone, True, None
    made.dressing = replace(seen.dressing, ads=())
    return made


def mirror_template(seen: Draft, chance: Chance) -> Draft:
    """Make a page with the same article in the template of another host."""
    return _on_another_host(seen, "mirror-template", seen.article, chance)


def syndicated(seen: Draft, chance: Chance) -> Draft:
    """Make a page with the same article on another host, with a line about its origin."""
    line = write(seen.article.vocabulary, chance.rng, _AGENCY_WORDS)
    made = _on_another_host(seen, "syndicated", joined([seen.article, line]), chance)
    made.resemblance = round(resemblance(seen.article, made.article), 4)
    return made


def recrawl(seen: Draft, chance: Chance) -> Draft:
    """Make a page with the same URL, unchanged or in a new dressing."""
    unchanged = chance.draw.random() < 0.4
    dressing = seen.dressing if unchanged else chance.dressing(seen.host, seen.article)
    return _copy(seen, "recrawl", seen.url, dressing)


def recrawl_changed(seen: Draft, chance: Chance) -> Draft:
    """Make a page with the same URL and a new article, like a front page."""
    return _new("recrawl-changed", seen.url, seen.host, chance)


CHANGES: Final[dict[Callable[[Draft, Chance], Draft], float]] = {
    identical: 6,
    same_text: 3,
    other_ads: 3,
    other_count: 3,
    other_time: 3,
    other_session: 3,
    small_edit: 5,
    large_edit: 3,
    drift: 4,
    archive: 1.5,
    contained: 3,
    mirror_template: 3,
    syndicated: 2,
    recrawl: 4,
    recrawl_changed: 2,
}
"""Percentage of pages of each kind. The rest are originals and the pages of trouble.py."""


def _new(kind: str, url: str, host: Host, chance: Chance) -> Draft:
    article = chance.article(host)
    return Draft(
        kind=kind,
        url=url,
        host=host,
        article=article,
        dressing=chance.dressing(host, article),
        fresh=[(0, len(article))],
    )


def _copy(seen: Draft, kind: str, url: str, dressing: Dressing | None = None) -> Draft:
    return Draft(
        kind=kind,
        url=url,
        host=seen.host,
        article=seen.article,
        dressing=dressing or seen.dressing,
        duplicate_of=seen.number,
        duplicate=True,
        resemblance=1.0,
    )


def _redressed(seen: Draft, kind: str, dressing: Dressing, chance: Chance) -> Draft:
    return _copy(seen, kind, chance.url(seen.host), dressing)


def _edited(seen: Draft, kind: str, article: Article, chance: Chance) -> Draft:
    made = _copy(seen, kind, chance.url(seen.host))
    made.article = article
    measured = resemblance(seen.article, article)
    made.duplicate, made.resemblance = is_duplicate(measured), round(measured, 4)
    return made


def _slightly_changed(article: Article, chance: Chance) -> Article:
    most = max(1, int(_SMALL * len(article)))
    if chance.draw.random() < 0.3:
        return with_sentence_added(article, chance.rng, 6)
    return with_words_changed(article, chance.rng, chance.draw.randint(1, most))


def _on_another_host(seen: Draft, kind: str, article: Article, chance: Chance) -> Draft:
    host = chance.host_of_same_language(seen.host)
    made = _copy(seen, kind, chance.url(host), chance.dressing(host, article))
    made.host, made.article = host, article
    return made
