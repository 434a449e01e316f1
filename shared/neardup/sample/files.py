"""File formats of a generated crawl: JSON lines or msgpack maps, as the pages topic accepts them.

JSON cannot represent bytes, so html in JSON is text, decoded with the charset of the page. msgpack keeps the fetched
bytes.
"""

import json

from neardup.messages.pages import write_page
from neardup.text.charset import charset_of
from neardup.types import Page

JSONL = "jsonl"
MSGPACK = "msgpack"
FORMATS = (JSONL, MSGPACK)


def write_sampled(page: Page, form: str) -> bytes:
    """Serialize one page in one of FORMATS."""
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
    # Not valid text: latin-1 maps each byte to a character, so different content stays different.
    return html.decode("latin-1")
