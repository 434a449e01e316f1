"""Reading of records on the pages topic.

A record has one of three forms. Its `content-type` header selects the form; without this header, the first byte of the
value does:

- JSON: an object with `url` and `html` or `text`, and optionally `fetched_at`, `content_type`, `charset`, `crawl`;
- msgpack: a map with the same fields; `html` may be bytes, so the crawler need not guess the charset;
- any other value is the page itself, with its url in the record's key.

A record with the header `neardup-canary` is not from the crawler. It is a planted page, described by the header.
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
"""Maximum number of characters in each of fetched_at, content_type, charset and crawl."""
CANARY_HEADER: Final = "neardup-canary"

_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_JSON: Final = "application/json"
_MSGPACK: Final = ("application/msgpack", "application/vnd.msgpack", "application/x-msgpack")


def read_page(record: Record) -> Page:
    """Read a page from a record. Raises only InvalidPage, whatever the bytes are."""
    value = record.value
    if not value:
        raise InvalidPage("expected a page, got a record without a value")
    header = _content_type(record.headers)
    declared = None if header is None else header.partition(";")[0].strip().lower()
    if declared == _JSON or (declared is None and value[:1] == b"{"):
        return page_from_json(value)
    if declared in _MSGPACK or (declared is None and starts_a_map(value)):
        return page_from_fields(_msgpack(value))
    if record.key is None:
        raise InvalidPage("expected JSON, msgpack, or a page with its url as the key, got another value and no key")
    try:
        url = record.key.decode()
    except UnicodeDecodeError as error:
        raise InvalidPage(f"expected the page's url in UTF-8 as the record's key: {error}") from error
    return Page(url=_checked_url(url), html=value, content_type=header)


def document_id(record: Record) -> DocumentId:
    """Return the id of a page, which is its place in the order of all pages. Canaries come after all pages."""
    timestamp = min(record.timestamp, AFTER_ALL - 1) if canary_note(record) is None else AFTER_ALL
    return DocumentId(timestamp, record.partition, record.offset)


def canary_note(record: Record) -> str | None:
    """Return the description of a planted page; None for a page of the crawler."""
    for name, value in record.headers:
        if name == CANARY_HEADER:
            return (value or b"").decode("utf-8", "replace")[:MAX_FIELD]
    return None


def write_page(page: Page) -> bytes:
    """Return a page as msgpack, a form that `read_page` accepts."""
    fields = {name: getattr(page, name) for name in Page.__slots__}
    packed: bytes = msgpack.packb({name: value for name, value in fields.items() if value is not None})
    return packed


def page_from_json(value: bytes) -> Page:
    """Read a page from a JSON object. Raises only InvalidPage, whatever the bytes are."""
    with contextlib.suppress(orjson.JSONDecodeError):
        return page_from_fields(orjson.loads(value))
    # orjson rejects lone surrogates and NaN, which crawlers write. The slow parser accepts them and has better errors.
    try:
        fields = json.loads(value)
    except (ValueError, RecursionError) as error:
        raise InvalidPage(f"expected a JSON object: {error}") from error
    return page_from_fields(fields)


def page_from_fields(fields: Any) -> Page:
    """Read a page from a decoded JSON or msgpack value. Raises only InvalidPage, whatever the value is."""
    if not isinstance(fields, dict):
        raise InvalidPage(f"expected an object with url and html or text, got a {type(fields).__name__}")
    html = fields.get("html")
    text = _optional_text(fields, "text")
    charset = _optional_text(fields, "charset")
    if isinstance(html, str):
        # Lone surrogates are legal in JSON strings but not in UTF-8.
        html = html.encode("utf-8", "replace")
        # The crawler has decoded the page: charsets declared by the page or the server no longer apply.
        charset = "utf-8"
    if html is not None and not isinstance(html, bytes):
        raise InvalidPage(f"html: expected text or bytes, got a {type(html).__name__}")
    if (html is None) == (text is None):
        raise InvalidPage("expected exactly one of html and text, got both or neither")
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
    """Return whether a non-empty value starts like a msgpack map."""
    # 0x80 to 0x8f start a small msgpack map and never start UTF-8 text. 0xde and 0xdf start a large map or a two-byte
    # UTF-8 letter. The second byte of the letter is 0x80 or more, which in a map means more than 32,000 entries.
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
        raise InvalidPage("url: expected no control characters, got at least one")
    return url
