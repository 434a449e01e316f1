"""Tests of extraction: charsets, reasons for skipped pages, and text that equals that of an independent parser."""

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.log import PlainRecord
from neardup.messages.pages import read_page
from neardup.text.charset import charset_of, codec_of, to_utf8
from neardup.text.extraction import Limits, read_text
from neardup.text.tokens import tokens_of
from neardup.types import Page
from tests.support import naive

REAL_PAGES = Path(__file__).parents[3] / "shared" / "data" / "pages-real.jsonl.gz"


@pytest.mark.parametrize(
    ("data", "charset", "content_type", "codec"),
    [
        (b"\xef\xbb\xbfx", "koi8-r", None, "utf-8"),
        (b"\xff\xfex\0", None, None, "utf-16-le"),
        (b"x", "KOI8-R ", None, "koi8-r"),
        (b"x", None, 'text/html; charset="gbk"', "gb18030"),
        (b"<meta charset='euc-kr'>", "nonsense", "text/html; charset=", "cp949"),
        (b'<meta http-equiv=content-type content="text/html; charset=latin1">', None, None, "cp1252"),
        (b"<meta charset=utf-16>", None, None, "utf-8"),
        (b'<?xml version="1.0" encoding="windows-1251"?>', None, None, "cp1251"),
        ("größe".encode(), None, None, "utf-8"),
        ("größe".encode("cp1252"), None, None, "cp1252"),
        ("größe".encode()[:-2], None, None, "utf-8"),
        (" " * 1100 + "<meta charset=koi8-r>", None, None, "utf-8"),
    ],
)
def test_charset(data: bytes | str, charset: str | None, content_type: str | None, codec: str) -> None:
    assert charset_of(data.encode() if isinstance(data, str) else data, charset, content_type) == codec


@given(st.binary(), st.one_of(st.none(), st.text()), st.one_of(st.none(), st.text()))
def test_charset_never_raises(data: bytes, charset: str | None, content_type: str | None) -> None:
    to_utf8(data, charset_of(data, charset, content_type))


def test_every_label_has_a_codec() -> None:
    for label in ("utf-8", "Shift_JIS", "iso-8859-8-i", "x-mac-cyrillic", "big5", "tis-620", "iso-2022-jp"):
        codec = codec_of(label)
        assert codec is not None
        assert to_utf8(b"plain", codec)


@pytest.mark.parametrize(
    ("page", "skipped"),
    [
        (Page("u", html=b"x", content_type="image/png"), "not text"),
        (Page("u", html=b"x", content_type="application/pdf; a=b"), "not text"),
        (Page("u", html=b"%PDF-1.4 ..."), "not text"),
        (Page("u", html=b"a\0\0\0b"), "not text"),
        (Page("u", html=b"x", content_type="Text/HTML"), None),
        (Page("u", html=b"<p>x", content_type="application/xhtml+xml"), None),
        (Page("u", html="x".encode("utf-16")), None),
    ],
)
def test_skipped(page: Page, skipped: str | None) -> None:
    assert read_text(page, Limits()).skipped == skipped


def test_plain_text_is_not_parsed_as_markup() -> None:
    page = Page("u", html=b"if a <b and c> d", content_type="text/plain")
    assert tokens_of(read_text(page, Limits()).utf8).words() == ["if", "a", "b", "and", "c", "d"]


def test_html_given_as_text_is_not_decoded() -> None:
    value = json.dumps({"url": "http://x", "html": "<meta charset=iso-8859-1>größe"}).encode()
    page = read_page(PlainRecord("pages", 0, 0, 0, None, value, ()))
    assert tokens_of(read_text(page, Limits()).utf8).words() == naive.canonical_tokens("größe".encode(), 2)


@pytest.mark.skipif(not REAL_PAGES.exists(), reason="needs the real pages, which are not part of the project")
def test_text_of_real_pages_equals_that_of_a_tree() -> None:
    shared = total = 0
    with gzip.open(REAL_PAGES, "rt") as lines:
        for line in lines:
            data = json.loads(line)["html"].encode()
            ours = read_text(Page("u", html=data, charset="utf-8"), Limits()).utf8.tobytes().decode("utf-8", "replace")
            left, right = ours.split(), naive.visible_text(data).split()
            matched = set(left) & set(right)
            shared += 2 * len(matched)
            total += len(set(left)) + len(set(right))
    assert shared / total > 0.995
