"""From a record on the pages topic to a Page.

Three forms, told apart by the record's `content-type` header, else by the first byte of the value:

- JSON: an object with `url` and `html` or `text`, optional `fetched_at`, `content_type`, `charset`, `crawl`;
- msgpack: the same as a map; `html` may be bytes, which spares the crawler a guess at the charset;
- anything else is the page itself, with its url in the record's key.

A record with the header `neardup-canary` is no page of the crawler's: it was planted, and the header says as what.
"""

import contextlib
import json
import re
from collections.abc import Sequence
from typing import Any, Final

import msgpack
import orjson

from neardup.errors import InvalidPage
from neardup.log import Record
from neardup.types import AFTER_ALL, DocumentId, Page

MAX_URL: Final = 8192
MAX_FIELD: Final = 1000
"""Characters of fetched_at, content_type, charset and crawl."""
CANARY_HEADER: Final = "neardup-canary"

_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_JSON: Final = "application/json"
_MSGPACK: Final = ("application/msgpack", "application/vnd.msgpack", "application/x-msgpack")


def read_page(record: Record) -> Page:
    """Read a record. Raises InvalidPage, and nothing else, whatever the bytes are."""
    value = record.value
    if not value:
        raise InvalidPage("the record has no value; expected a page")
    header = _content_type(record.headers)
    declared = None if header is None else header.partition(";")[0].strip().lower()
    if declared == _JSON or (declared is None and value[:1] == b"{"):
        return page_from_json(value)
    if declared in _MSGPACK or (declared is None and starts_a_map(value)):
        return page_from_fields(_msgpack(value))
    if record.key is None:
        raise InvalidPage("neither JSON nor msgpack, and no url in the key; expected one of these")
    try:
        url = record.key.decode()
    except UnicodeDecodeError as error:
        raise InvalidPage(f"the key should be the page's url in UTF-8: {error}") from error
    return Page(url=_checked_url(url), html=value, content_type=header)


def document_id(record: Record) -> DocumentId:
    """The place of a page in the order of all pages; that of a canary is after all of them."""
    timestamp = min(record.timestamp, AFTER_ALL - 1) if canary_note(record) is None else AFTER_ALL
    return DocumentId(timestamp, record.partition, record.offset)


def canary_note(record: Record) -> str | None:
    """What a canary was planted as; None for a page of the crawler's."""
    for name, value in record.headers:
        if name == CANARY_HEADER:
            return (value or b"").decode("utf-8", "replace")[:MAX_FIELD]
    return None


def write_page(page: Page) -> bytes:
    """A page as msgpack, as `read_page` takes it."""
    fields = {name: getattr(page, name) for name in Page.__slots__}
    packed: bytes = msgpack.packb({name: value for name, value in fields.items() if value is not None})
    return packed


def page_from_json(value: bytes) -> Page:
    """A page from a JSON object. Raises InvalidPage, and nothing else, whatever the bytes are."""
    with contextlib.suppress(orjson.JSONDecodeError):
        return page_from_fields(orjson.loads(value))
    # Stricter than crawlers are: no lone surrogates, no NaN. The slow parser takes those, and says what is wrong.
    try:
        fields = json.loads(value)
    except (ValueError, RecursionError) as error:
        raise InvalidPage(f"expected a JSON object: {error}") from error
    return page_from_fields(fields)


def page_from_fields(fields: Any) -> Page:
    """A page from a decoded JSON or msgpack value. Raises InvalidPage, and nothing else, whatever the value is."""
    if not isinstance(fields, dict):
        raise InvalidPage(f"expected an object with url and html or text, got a {type(fields).__name__}")
    html = fields.get("html")
    text = _optional_text(fields, "text")
    charset = _optional_text(fields, "charset")
    if isinstance(html, str):
        # Lone surrogates are legal in JSON strings but not in UTF-8.
        html = html.encode("utf-8", "replace")
        # Decoded before it came to us: what the page or the server says of its bytes is no longer true.
        charset = "utf-8"
    if html is not None and not isinstance(html, bytes):
        raise InvalidPage(f"html: expected text or bytes, got a {type(html).__name__}")
    if (html is None) == (text is None):
        raise InvalidPage("expected exactly one of html and text")
    return Page(
        url=_checked_url(fields.get("url")),
        html=html,
        text=text,
        fetched_at=_optional_text(fields, "fetched_at"),
        content_type=_optional_text(fields, "content_type"),
        charset=charset,
        crawl=_optional_text(fields, "crawl"),
    )


def starts_a_map(value: bytes) -> bool:
    """Whether bytes, of which there is at least one, begin like a msgpack map."""
    # 0x80 to 0x8f start a small msgpack map and never UTF-8. 0xde and 0xdf start a large map, or a letter of two bytes
    # whose second is 0x80 or more, which as a map would have over 32,000 entries.
    return 0x80 <= value[0] <= 0x8F or (value[0] in (0xDE, 0xDF) and value[1:2] < b"\x80")


def _content_type(headers: Sequence[tuple[str, bytes]]) -> str | None:
    for name, value in headers:
        if name.lower() == "content-type" and value:
            return value.decode("latin-1")[:MAX_FIELD]
    return None


def _msgpack(value: bytes) -> Any:
    try:
        return msgpack.unpackb(value, raw=False)
    except Exception as error:  # msgpack raises a dozen types for malformed input
        raise InvalidPage(f"expected a msgpack map: {error!r}") from error


def _optional_text(fields: dict[str, Any], name: str) -> str | None:
    value = fields.get(name)
    if value is None:
        return None
    if not isinstance(value, str):
        raise InvalidPage(f"{name}: expected text, got a {type(value).__name__}")
    if name != "text" and len(value) > MAX_FIELD:
        raise InvalidPage(f"{name}: expected at most {MAX_FIELD} characters, got {len(value)}")
    return value.encode("utf-8", "replace").decode()


def _checked_url(url: Any) -> str:
    if not isinstance(url, str) or not url:
        raise InvalidPage(f"url: expected text, got {'nothing' if not url else type(url).__name__}")
    if len(url) > MAX_URL:
        raise InvalidPage(f"url: expected at most {MAX_URL} characters, got {len(url)}")
    if _CONTROL.search(url):
        raise InvalidPage("url: control characters are not allowed")
    return url
