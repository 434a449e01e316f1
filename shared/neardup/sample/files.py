"""A page of a made crawl as it stands in a file: a line of JSON, or a msgpack map.

Both are what the pages topic takes. JSON has no bytes, so there the html is text, decoded by the page's charset;
msgpack keeps the bytes as they were fetched.
"""

import json

from neardup.messages.pages import write_page
from neardup.text.charset import charset_of
from neardup.types import Page

JSONL = "jsonl"
MSGPACK = "msgpack"
FORMATS = (JSONL, MSGPACK)


def write_sampled(page: Page, form: str) -> bytes:
    """One page, as `form` of FORMATS has it."""
    if form == MSGPACK:
        return write_page(page)
    fields = {name: getattr(page, name) for name in Page.__slots__}
    if page.html is not None:
        fields["html"] = _as_text(page, page.html)
    present = {name: value for name, value in fields.items() if value is not None}
    return json.dumps(present, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _as_text(page: Page, html: bytes) -> str:
    codec = charset_of(html, page.charset, page.content_type)
    try:
        text = html.decode(codec)
        if text.encode(codec) == html:
            return text
    except UnicodeError:
        pass
    # Not text at all: latin-1 gives each byte a character, so different content stays different.
    return html.decode("latin-1")
