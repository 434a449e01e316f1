import json
from typing import Any

import msgpack
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from neardup.errors import InvalidPage
from neardup.log import PlainRecord
from neardup.messages.pages import MAX_URL, document_id, read_page, write_page
from neardup.types import DocumentId, Page

URL = "https://example.org/a?b=c"
JSON = (("content-type", b"application/json"),)
MSGPACK = (("content-type", b"application/msgpack"),)
HTML = (("content-type", b"text/html"),)

Headers = tuple[tuple[str, bytes], ...]


def record(value: bytes | None, key: bytes | None = None, headers: Headers = ()) -> PlainRecord:
    return PlainRecord("pages", 3, 14, 1_700_000_000_000, key, value, headers)


def read_json(fields: Any, headers: Headers = ()) -> Page:
    return read_page(record(json.dumps(fields).encode(), headers=headers))


def read_msgpack(fields: Any, headers: Headers = ()) -> Page:
    return read_page(record(msgpack.packb(fields), headers=headers))


ALL_FIELDS = {
    "url": URL, "html": "<p>é</p>", "fetched_at": "2024-01-01T00:00:00Z",
    "content_type": "text/html", "charset": "utf-8", "crawl": "crawl-7",
}  # fmt: skip
WHOLE = Page(
    URL,
    html="<p>é</p>".encode(),
    text=None,
    fetched_at="2024-01-01T00:00:00Z",
    content_type="text/html",
    charset="utf-8",
    crawl="crawl-7",
)


# The three forms


def test_a_json_object_is_a_page() -> None:
    assert read_json(ALL_FIELDS) == WHOLE
    assert read_json({"url": URL, "text": "words"}) == Page(URL, text="words")


def test_a_msgpack_map_is_a_page() -> None:
    assert read_msgpack(ALL_FIELDS) == WHOLE
    assert read_msgpack({"url": URL, "text": "words"}) == Page(URL, text="words")


def test_html_in_msgpack_may_be_bytes_of_any_charset() -> None:
    assert read_msgpack({"url": URL, "html": b"caf\xe9"}) == Page(URL, html=b"caf\xe9")


def test_html_as_text_is_utf_8_whatever_charset_it_declares() -> None:
    read = read_json({"url": URL, "html": "<meta charset=latin-1>é", "charset": "latin-1"})
    assert read == Page(URL, html="<meta charset=latin-1>é".encode(), charset="utf-8")


def test_the_charset_of_a_raw_page_is_kept() -> None:
    header = ("Content-Type", b"text/html; charset=Shift_JIS")
    read = read_page(record(b"<p>\x93\xfa", URL.encode(), headers=(header,)))
    assert read == Page(URL, html=b"<p>\x93\xfa", content_type="text/html; charset=Shift_JIS")


def test_anything_else_is_the_page_itself_with_its_url_in_the_key() -> None:
    assert read_page(record(b"<html>caf\xe9", URL.encode())) == Page(URL, html=b"<html>caf\xe9")
    assert read_page(record(b"plain words", URL.encode())) == Page(URL, html=b"plain words")


@pytest.mark.parametrize("first", ["é", "日", "ހ", "ߊ"])
def test_a_raw_page_may_start_with_any_letter(first: str) -> None:
    value = f"{first} words".encode()
    assert read_page(record(value, URL.encode())) == Page(URL, html=value)


def test_unknown_fields_are_ignored() -> None:
    assert read_json({"url": URL, "html": "x", "status": 200, "links": ["a"]}) == Page(URL, html=b"x", charset="utf-8")


def test_empty_content_is_a_page() -> None:
    assert read_json({"url": URL, "html": ""}) == Page(URL, html=b"", charset="utf-8")
    assert read_json({"url": URL, "text": ""}) == Page(URL, text="")


def test_null_fields_are_absent_fields() -> None:
    assert read_json({"url": URL, "html": None, "text": "x", "crawl": None}) == Page(URL, text="x")


def test_lone_surrogates_in_json_are_replaced() -> None:
    page = read_page(record(rb'{"url": "u", "text": "a\ud800b", "crawl": "\udfff"}'))
    assert page == Page("u", text="a?b", crawl="?")
    assert read_page(record(rb'{"url": "u", "html": "a\ud800b"}')).content == b"a?b"


# Detection of the form


@pytest.mark.parametrize("name", ["content-type", "Content-Type", "CONTENT-TYPE"])
@pytest.mark.parametrize("value", [b"application/json", b"Application/JSON; charset=utf-8", b" application/json "])
def test_a_header_declares_json(name: str, value: bytes) -> None:
    # Without the header, a value that starts with a blank is read as the page itself.
    assert read_page(record(b' {"url": "u", "text": "x"}', b"key", ((name, value),))) == Page("u", text="x")


@pytest.mark.parametrize("value", [b"application/msgpack", b"application/x-msgpack", b"application/vnd.msgpack"])
def test_a_header_declares_msgpack(value: bytes) -> None:
    assert read_msgpack({"url": "u", "text": "x"}, (("content-type", value),)) == Page("u", text="x")


def test_the_header_wins_over_the_content() -> None:
    for value in (json.dumps(ALL_FIELDS).encode(), msgpack.packb(ALL_FIELDS)):
        assert read_page(record(value, URL.encode(), HTML)) == Page(URL, html=value, content_type="text/html")


def test_an_empty_header_is_ignored() -> None:
    assert read_json(ALL_FIELDS, (("content-type", b""),)) == WHOLE


def test_other_headers_are_ignored() -> None:
    assert read_json(ALL_FIELDS, (("x-content-type", b"text/html"), ("trace", b"\xff"))) == WHOLE


@pytest.mark.parametrize("count", [2, 15, 16, 70_000])
def test_a_msgpack_map_of_any_size_is_detected_by_its_first_byte(count: int) -> None:
    fields = {"url": "u", "text": "x"} | {f"more{number}": number for number in range(count - 2)}
    assert read_msgpack(fields) == Page("u", text="x")


def test_the_document_id_is_the_place_of_the_record() -> None:
    assert document_id(record(b"x")) == DocumentId(1_700_000_000_000, 3, 14)


# Not pages


@pytest.mark.parametrize("value", [None, b""])
@pytest.mark.parametrize("headers", [(), JSON, MSGPACK, HTML])
def test_a_record_without_a_value_is_not_a_page(value: bytes | None, headers: Headers) -> None:
    with pytest.raises(InvalidPage, match="got a record without a value"):
        read_page(record(value, URL.encode(), headers))


def test_a_raw_page_without_a_key_is_not_a_page() -> None:
    with pytest.raises(InvalidPage, match="expected JSON, msgpack, or a page with its url as the key"):
        read_page(record(b"<html>"))


def test_a_key_that_is_not_utf8_is_not_a_url() -> None:
    with pytest.raises(InvalidPage, match="expected the page's url in UTF-8 as the record's key"):
        read_page(record(b"<html>", b"\xff\xfe"))


@pytest.mark.parametrize("value", [b"{", b'{"url": }', b"\xff\xfe{", b"[" * 100_000, b"1" * 5000])
def test_broken_json_is_not_a_page(value: bytes) -> None:
    with pytest.raises(InvalidPage, match="expected a JSON object"):
        read_page(record(value, headers=JSON))


@pytest.mark.parametrize("value", [b"\x82\xa3url", b"\xc1", b"\x80\x80", b"\x91" * 5000, b"\x81\x01\x02", b"\xa1\xff"])
def test_broken_msgpack_is_not_a_page(value: bytes) -> None:
    with pytest.raises(InvalidPage, match="expected a msgpack map"):
        read_page(record(value, headers=MSGPACK))


@pytest.mark.parametrize(("fields", "got"), [([], "list"), ("url", "str"), (5, "int"), (None, "NoneType")])
def test_a_value_that_is_not_an_object_is_not_a_page(fields: Any, got: str) -> None:
    with pytest.raises(InvalidPage, match=f"expected an object with url and html or text, got a {got}"):
        read_json(fields, JSON)
    with pytest.raises(InvalidPage, match=f"expected an object with url and html or text, got a {got}"):
        read_msgpack(fields, MSGPACK)


@pytest.mark.parametrize("content", [{}, {"html": "a", "text": "b"}, {"html": None, "text": None}])
def test_a_page_has_exactly_one_of_html_and_text(content: dict[str, Any]) -> None:
    with pytest.raises(InvalidPage, match="exactly one of html and text"):
        read_json({"url": URL, **content})


@pytest.mark.parametrize(("html", "got"), [(5, "int"), (["x"], "list"), ({"a": 1}, "dict"), (True, "bool")])
def test_html_of_another_type_is_not_a_page(html: Any, got: str) -> None:
    with pytest.raises(InvalidPage, match=f"html: expected text or bytes, got a {got}"):
        read_json({"url": URL, "html": html})


@pytest.mark.parametrize("name", ["text", "fetched_at", "content_type", "charset", "crawl"])
def test_a_field_that_is_not_text_is_not_a_page(name: str) -> None:
    fields = {"url": URL} | ({} if name == "text" else {"text": "x"})
    for value, got in ((5, "int"), ([], "list"), (b"x", "bytes")):
        with pytest.raises(InvalidPage, match=f"{name}: expected text, got a {got}"):
            read_msgpack({**fields, name: value})


@pytest.mark.parametrize(("url", "got"), [(None, "nothing"), ("", "nothing"), (5, "int"), (["u"], "list")])
def test_a_page_without_a_url_is_not_a_page(url: Any, got: str) -> None:
    with pytest.raises(InvalidPage, match=f"url: expected text, got {got}"):
        read_json({"url": url, "text": "x"})


def test_an_absent_or_empty_url_is_not_a_url() -> None:
    with pytest.raises(InvalidPage, match="url: expected text, got nothing"):
        read_json({"text": "x"})
    with pytest.raises(InvalidPage, match="url: expected text, got nothing"):
        read_page(record(b"<html>", b""))


def test_a_url_that_is_too_long_is_not_a_url() -> None:
    assert read_json({"url": "u" * MAX_URL, "text": "x"}).url == "u" * MAX_URL
    with pytest.raises(InvalidPage, match=f"url: expected at most {MAX_URL} characters, got {MAX_URL + 1}"):
        read_json({"url": "u" * (MAX_URL + 1), "text": "x"})


@pytest.mark.parametrize("char", ["\x00", "\n", "\x1f", "\x7f", "\x85", "\x9f", "\ud800"])
def test_a_url_with_control_characters_is_not_a_url(char: str) -> None:
    with pytest.raises(InvalidPage, match="url: expected no control characters"):
        read_json({"url": f"http://a{char}b", "text": "x"})


# Arbitrary bytes

plain = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text() | st.binary()
names = st.sampled_from(["url", "html", "text", "fetched_at", "content_type", "charset", "crawl", "other"])
values = plain | st.lists(plain, max_size=3) | st.dictionaries(st.text(), plain, max_size=3)
maps = st.dictionaries(names, values)
content_types = st.sampled_from(
    [b"application/json", b"application/msgpack", b"APPLICATION/X-MSGPACK;v=1", b"text/html", b";", b"\xff"]
)
header_lists = st.lists(
    st.tuples(st.sampled_from(["content-type", "Content-Type"]), content_types) | st.tuples(st.text(), st.binary()),
    max_size=3,
)
page_bytes = (
    st.binary(max_size=200)
    | maps.map(msgpack.packb)
    | st.text().map(str.encode)
    | st.dictionaries(names, st.text() | st.integers() | st.none()).map(lambda fields: json.dumps(fields).encode())
    | st.tuples(st.sampled_from([b"{", b"\x82", b"\xde\x00", b"\xdf"]), st.binary(max_size=60)).map(b"".join)
)


@given(value=st.none() | page_bytes, key=st.none() | st.binary(max_size=20), headers=header_lists)
@example(value=b"{" + b"[" * 100_000, key=None, headers=[])
@example(value=b"\x81\xa1a" * 1000 + b"\xc0", key=None, headers=[])
@example(value=b'{"url": "u", "text": ' + b"9" * 5000 + b"}", key=None, headers=[])
def test_any_record_raises_only_invalid_page(
    value: bytes | None, key: bytes | None, headers: list[tuple[str, bytes]]
) -> None:
    try:
        page = read_page(record(value, key, tuple(headers)))
    except InvalidPage as error:
        str(error).encode()  # the text becomes part of a dead letter
        return
    assert page.url
    assert (page.html is None) != (page.text is None)
    # A page that was read can be written, so it cannot break a later stage.
    assert read_page(record(write_page(page))) == page
    assert isinstance(page.content, bytes)


utf8 = st.text(st.characters(exclude_categories=["Cs"]))
urls = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=50)
options = {name: st.none() | utf8 for name in ("fetched_at", "content_type", "charset", "crawl")}
pages = st.one_of(
    st.builds(Page, url=urls, html=st.binary(), text=st.none(), **options),
    st.builds(Page, url=urls, html=st.none(), text=utf8, **options),
)


@given(page=pages, declared=st.booleans())
def test_a_written_page_is_read_back(page: Page, declared: bool) -> None:
    assert read_page(record(write_page(page), headers=MSGPACK if declared else ())) == page
