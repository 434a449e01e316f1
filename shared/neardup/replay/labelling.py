"""Differences as unlabelled pairs in the format of `neardup evaluate`."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TypedDict

from neardup.replay.differences import Difference
from neardup.text.charset import charset_of, to_utf8
from neardup.types import Page, PageRef


class UnlabelledPair(TypedDict):
    """A pair for `neardup evaluate` without a label, with the decisions of both settings."""

    id: str
    label: None
    was: str
    now: str
    resemblance: float | None
    containment: float | None
    hamming: float | None
    a: dict[str, str]
    b: dict[str, str]


def pages_by_number(pages: Iterable[Page], numbers: set[int]) -> dict[int, Page]:
    """Return the pages with these numbers, counted from 0."""
    last = max(numbers, default=-1)
    return {number: page for number, page in enumerate(islice(pages, last + 1)) if number in numbers}


def pairs_to_label(
    differences: Iterable[Difference], names: Sequence[PageRef], pages: Mapping[int, Page]
) -> Iterator[UnlabelledPair]:
    """Yield a pair per difference that refers to another page. `a` is the earlier page.

    `names` and `pages` are indexed by page number. Without pages, a side has only the URL.
    """
    for each in differences:
        if each.other is None:
            continue
        yield {
            "id": names[each.page].document,
            "label": None,
            "was": each.was,
            "now": each.now,
            "resemblance": each.resemblance,
            "containment": each.containment,
            "hamming": each.hamming,
            "a": _side(names[each.other].url, pages.get(each.other)),
            "b": _side(names[each.page].url, pages.get(each.page)),
        }


def _side(url: str, page: Page | None) -> dict[str, str]:
    if page is None:
        return {"url": url}
    if page.text is not None:
        return {"url": url, "text": page.text}
    assert page.html is not None
    html = to_utf8(page.html, charset_of(page.html, page.charset, page.content_type))
    # Declare the charset as a server header would, because the page itself may still declare its original charset.
    return {"url": url, "html": html.decode("utf-8", "replace"), "charset": "utf-8"}
