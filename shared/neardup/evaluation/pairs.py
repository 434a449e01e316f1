"""Labelled pairs of pages as JSON lines: `{"label", "a", "b"}`, with optional `id`, `url_a` and `url_b`.

A side is a string or an object with `html` or `text` and an optional `url`. A string that starts with a tag is HTML,
any other string is text. A pair whose label is null is skipped.
"""

import gzip
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import orjson

from neardup.errors import InvalidPage, InvalidPair
from neardup.messages.pages import page_from_fields
from neardup.types import Page
from neardup.util.urls import host_of

_MARKUP: Final = re.compile(r"\s*<(?:!doctype\b|!--|\?xml\b|[a-z][a-z0-9:-]*[\s/>])", re.IGNORECASE)
_COMPRESSED: Final = ".gz"


@dataclass(frozen=True, slots=True)
class Pair:
    """Two pages, and whether people consider them near-duplicates. `same_host` is None unless both have a URL.

    `source` is the name of the file, for results per file.
    """

    id: str
    source: str
    label: bool
    a: Page
    b: Page
    same_host: bool | None = None


def looks_like_markup(text: str) -> bool:
    """Return whether a string starts with a tag. Tags later in the string do not count."""
    return _MARKUP.match(text) is not None


def read_pairs(paths: Sequence[Path]) -> list[Pair]:
    """Read all pairs in order. Raises InvalidPair with file and line, or if there are none."""
    pairs = [pair for path in paths for pair in _pairs_in(path)]
    if not pairs:
        raise InvalidPair(f"{', '.join(map(str, paths))}: expected at least one labelled pair, got none")
    return pairs


def _pairs_in(path: Path) -> Iterator[Pair]:
    opened = gzip.open if path.suffix == _COMPRESSED else open
    number = 0
    try:
        with opened(path, "rb") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip() and (pair := pair_from(line, path.name, number)) is not None:
                    yield pair
    except (OSError, EOFError, zlib.error) as error:
        raise InvalidPair(f"{path}, after line {number}: expected a readable file, got: {error}") from error
    except InvalidPair as error:
        raise InvalidPair(f"{path}, line {number}: {error}") from error


def pair_from(line: bytes, source: str, number: int) -> Pair | None:
    """Parse one line of any bytes. Return None for a pair whose label is still null. Raises InvalidPair."""
    fields = _fields_of(line)
    if "label" in fields and fields["label"] is None:
        return None
    return _pair(fields, source, number)


def _fields_of(line: bytes) -> dict[str, object]:
    try:
        fields = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise InvalidPair(f"expected a JSON object, got: {error}") from error
    if not isinstance(fields, dict):
        raise InvalidPair(f"expected an object with label, a and b, got a {type(fields).__name__}")
    return fields


def _pair(fields: dict[str, object], source: str, number: int) -> Pair:
    label = fields.get("label")
    if label not in (0, 1):  # True and False equal 1 and 0.
        raise InvalidPair(f"label: expected 0, 1, false or true, got {label!r}")
    name = str(fields.get("id", number))
    a, b = (_side(fields, side, f"{source}#{name}/{side}") for side in "ab")
    return Pair(name, source, bool(label), a[0], b[0], _same_host(a[1], b[1]))


def _side(fields: dict[str, object], side: str, unnamed: str) -> tuple[Page, str | None]:
    given = fields.get(side)
    if isinstance(given, str):
        given = {"html" if looks_like_markup(given) else "text": given}
    if not isinstance(given, dict):
        raise InvalidPair(f"{side}: expected a string or an object with html or text, got a {type(given).__name__}")
    url = given.get("url") or fields.get(f"url_{side}")
    try:
        page = page_from_fields({**given, "url": url or unnamed})
    except InvalidPage as error:
        raise InvalidPair(f"{side}: {error}") from error
    return page, page.url if url else None


def _same_host(a: str | None, b: str | None) -> bool | None:
    hosts = [None if url is None else host_of(url) for url in (a, b)]
    # The host is unknown without a URL or with an invalid one.
    return None if None in hosts else hosts[0] == hosts[1]


def groups_of(pairs: Sequence[Pair]) -> list[int]:
    """Return a group number per pair. Pairs that share a page, directly or through other pairs, have the same number.

    A method that was fitted on one pair of a group must not be tested on another pair of the group, because the two
    pairs may share a page.
    """
    first: dict[bytes, int] = {}
    leader = list(range(len(pairs)))

    def lead(place: int) -> int:
        while leader[place] != place:
            leader[place] = place = leader[leader[place]]
        return place

    for place, pair in enumerate(pairs):
        for page in (pair.a, pair.b):
            known = first.setdefault(page.content, place)
            leader[lead(place)] = lead(known)
    return [lead(place) for place in range(len(pairs))]
