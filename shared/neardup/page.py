"""From a record on the pages topic to a Page.

Three forms, told apart by the record's `content-type` header, else by the first byte of the value:

- JSON: an object with `url` and `html` or `text`, optional `fetched_at`, `content_type`, `charset`, `crawl`;
- msgpack: the same as a map; `html` may be bytes, which spares the crawler a guess at the charset;
- anything else is the page itself, with its url in the record's key.
"""

import json
from collections.abc import Sequence
from typing import Any, Final

import msgpack

from neardup.errors import InvalidPage
from neardup.log import Record
from neardup.types import DocumentId, Page

MAX_URL: Final = 8192

_JSON: Final = "application/json"
_MSGPACK: Final = ("application/msgpack", "application/vnd.msgpack", "application/x-msgpack")


def read_page(record: Record) -> Page:
    """Read a record. Raises InvalidPage, and nothing else, whatever the bytes are."""
    value = record.value
    if not value:
        raise InvalidPage("the record has no value; expected a page")
    declared = _declared_type(record.headers)
    first = value[0]
    if declared == _JSON or (declared is None and first == ord("{")):
        return _from_fields(_json(value))
    # 0x80-0x8f, 0xde and 0xdf start a msgpack map; no text in UTF-8 starts with them.
    if declared in _MSGPACK or (declared is None and (0x80 <= first <= 0x8F or first in (0xDE, 0xDF))):
        return _from_fields(_msgpack(value))
    if record.key is None:
        raise InvalidPage("neither JSON nor msgpack, and no url in the key; expected one of these")
    try:
        url = record.key.decode()
    except UnicodeDecodeError as error:
        raise InvalidPage(f"the key should be the page's url in UTF-8: {error}") from error
    return Page(url=_checked_url(url), html=value, content_type=declared)


def document_id(record: Record) -> DocumentId:
    """The place of a page in the order of all pages."""
    return DocumentId(record.timestamp, record.partition, record.offset)


def write_page(page: Page) -> bytes:
    """A page as msgpack, as `read_page` takes it."""
    fields = {name: getattr(page, name) for name in Page.__slots__}
    packed: bytes = msgpack.packb({name: value for name, value in fields.items() if value is not None})
    return packed


def _declared_type(headers: Sequence[tuple[str, bytes]]) -> str | None:
    for name, value in headers:
        if name.lower() == "content-type" and value:
            return value.decode("latin-1").partition(";")[0].strip().lower()
    return None


def _json(value: bytes) -> Any:
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as error:
        raise InvalidPage(f"expected a JSON object: {error}") from error


def _msgpack(value: bytes) -> Any:
    try:
        return msgpack.unpackb(value, raw=False)
    except Exception as error:  # msgpack raises a dozen types for malformed input
        raise InvalidPage(f"expected a msgpack map: {error!r}") from error


def _from_fields(fields: Any) -> Page:
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


def _optional_text(fields: dict[str, Any], name: str) -> str | None:
    value = fields.get(name)
    if value is None:
        return None
    if not isinstance(value, str):
        raise InvalidPage(f"{name}: expected text, got a {type(value).__name__}")
    return value.encode("utf-8", "replace").decode()


def _checked_url(url: Any) -> str:
    if not isinstance(url, str) or not url:
        raise InvalidPage(f"url: expected text, got {'nothing' if not url else type(url).__name__}")
    if len(url) > MAX_URL:
        raise InvalidPage(f"url: expected at most {MAX_URL} characters, got {len(url)}")
    if any(char < " " or "\x7f" <= char <= "\x9f" or "\ud800" <= char <= "\udfff" for char in url):
        raise InvalidPage("url: control characters are not allowed")
    return url
