"""Unusable pages of a crawl: error pages, empty pages, and content that is not text."""

from typing import Final

from neardup.sample.draft import Chance, Draft
from neardup.sample.hosts import Host
from neardup.sample.template import Dressing
from neardup.types import Page

ERROR_PAGES: Final = 2.0
"""Percentage of soft error pages."""
SKIPPED_PAGES: Final = 2.0
"""Percentage of skipped pages: too short, empty, not text."""


def error_page(host: Host, chance: Chance, first: int | None) -> Draft:
    """Make an error page of a host. `first` is the number of the host's first error page, None for the first."""
    url = chance.url(host)
    asked_for = url.split("/", 3)[3]
    return Draft(
        kind="error-page",
        url=url,
        host=host,
        article=host.error,
        dressing=Dressing(ads=(), counter=0, date="", session="", note=asked_for),
        bare=True,
        duplicate_of=first,
        duplicate=first is not None,
        resemblance=None if first is None else 1.0,
    )


def skipped_page(host: Host, chance: Chance, fetched_at: str) -> tuple[str, Page]:
    """Return the kind and content of a page that must get the verdict "skipped"."""
    url = chance.url(host)
    kind, content, content_type = _skipped_content(host, chance)
    return kind, Page(url, html=content, fetched_at=fetched_at, content_type=content_type)


def _skipped_content(host: Host, chance: Chance) -> tuple[str, bytes, str]:
    way = chance.draw.randrange(4)
    if way == 0:
        words = host.language.space.join(host.language.common[:2])
        html = f'<meta charset="{host.charset}"><title>404</title><h1>404</h1><p>{words}</p>'
        return "skipped-short", html.encode(host.charset), host.content_type
    if way == 1:
        return "skipped-empty", b"<html><head></head><body></body></html>", "text/html"
    if way == 2:
        return "skipped-type", b"\x89PNG\r\n\x1a\n" + chance.rng.bytes(2000), "image/png"
    return "skipped-type", b"%PDF-1.7\n" + chance.rng.bytes(4000), "application/pdf"
