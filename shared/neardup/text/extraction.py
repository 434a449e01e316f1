"""Extraction of a page's visible text: charset, markup, limits, and reasons to skip the page."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from neardup.errors import OverLimit
from neardup.kernels.text.markup import visible_text
from neardup.text.charset import charset_of, to_utf8
from neardup.text.unicode_tables import tables
from neardup.types import Page
from neardup.util.scratch import Scratch

NOT_TEXT: Final = "not text"

_TEXT_TYPES: Final = ("application/xhtml+xml", "application/xml", "application/json", "application/javascript")
_PLAIN_TYPES: Final = ("text/plain", "text/markdown", "text/csv", "application/json")
_BINARY: Final = (
    b"%PDF-",
    b"\x89PNG",
    b"GIF8",
    b"\xff\xd8\xff",
    b"PK\x03\x04",
    b"\x1f\x8b",
    b"RIFF",
    b"\x7fELF",
    b"BZh",
)

_scratch = Scratch()


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a page.

    A page over a limit is cut, and its verdict names the limit. With `reject`, the page is dead-lettered instead.
    """

    bytes: int = 8 * 2**20
    nesting: int = 512
    tokens: int = 200_000
    reject: bool = False

    def over(self, what: str, limit: int) -> str:
        """Return the name of the limit for the verdict. Raises OverLimit if pages over a limit are rejected."""
        if self.reject:
            raise OverLimit(f"expected at most {limit} {what}, the page has more; raise the limit or allow cutting")
        return what


@dataclass(frozen=True, slots=True)
class Text:
    """A page's text in UTF-8, the limits at which it was cut, and the reason to skip the page, if any.

    The bytes are in a buffer of the calling thread and are valid until that thread reads its next page.
    """

    utf8: NDArray[np.uint8]
    cut: tuple[str, ...] = ()
    skipped: str | None = None


_NOTHING: Final = np.zeros(0, dtype=np.uint8)


def read_text(page: Page, limits: Limits, *, main_content: bool = False) -> Text:
    """Return the text of a page.

    Raises OverLimit if the page is over a limit and such pages are rejected. No content raises any other error.
    """
    content_type = (page.content_type or "").partition(";")[0].strip().lower()
    if content_type and not is_text(content_type):
        return Text(_NOTHING, skipped=NOT_TEXT)
    cut: list[str] = []
    if page.text is not None:
        data = page.text.encode("utf-8", "replace")
    else:
        assert page.html is not None
        data = page.html
        if not content_type and data.startswith(_BINARY):
            return Text(_NOTHING, skipped=NOT_TEXT)
    if len(data) > limits.bytes:
        cut.append(limits.over("bytes", limits.bytes))
        data = data[: limits.bytes]
    if page.text is not None:
        return Text(np.frombuffer(data, dtype=np.uint8), tuple(cut))
    codec = charset_of(data, page.charset, page.content_type)
    data = to_utf8(data, codec)
    if not content_type and b"\0" in data[:512]:
        return Text(_NOTHING, skipped=NOT_TEXT)
    markup = np.frombuffer(data, dtype=np.uint8)
    if content_type in _PLAIN_TYPES:
        return Text(markup, tuple(cut))
    text, deepest = _visible(markup, limits.nesting, main_content)
    if main_content and not text.size:
        # The page consists of links only: use all of its text rather than none.
        text, deepest = _visible(markup, limits.nesting, False)
    if deepest > limits.nesting:
        cut.append(limits.over("nesting", limits.nesting))
    return Text(text, tuple(cut))


def _visible(markup: NDArray[np.uint8], nesting: int, main: bool) -> tuple[NDArray[np.uint8], int]:
    known = tables()
    out = _scratch.room("text", 2 * markup.size + 64, np.uint8)
    size, deepest = visible_text(
        markup, known.tag_keys, known.tag_flags, known.reference_keys, known.reference_codes, main, nesting, out
    )
    return out[:size], deepest


def is_text(content_type: str) -> bool:
    """Return True if content of this type, in lower case and without parameters, is text."""
    return content_type.startswith("text/") or content_type in _TEXT_TYPES or content_type.endswith(("+xml", "+json"))
