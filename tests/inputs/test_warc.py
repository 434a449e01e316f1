"""Tests of WARC files, which the tests write record by record."""

import gzip
import zlib
from contextlib import suppress
from pathlib import Path

import brotli
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.errors import InvalidPage
from neardup.inputs import Item, open_input
from neardup.inputs.http_body import decoded_body

BODY = "<p>Страница страница".encode("koi8-r") * 10
GZIPPED = gzip.compress(BODY, mtime=0)


def http(body: bytes = BODY, *headers: str, status: str = "200 OK", kind: str = "text/html; charset=koi8-r") -> bytes:
    lines = [f"HTTP/1.1 {status}", *([f"Content-Type: {kind}"] if kind else []), *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def record(url: str, content: bytes, *, kind: str = "response", length: int | None = None) -> bytes:
    lines = [
        "WARC/1.0",
        f"WARC-Type: {kind}",
        "WARC-Record-ID: <urn:uuid:00000000-0000-0000-0000-000000000000>",
        f"WARC-Target-URI: {url}",
        "WARC-Date: 2026-01-02T03:04:05Z",
        "Content-Type: application/http; msgtype=response",
        f"Content-Length: {len(content) if length is None else length}",
        "",
        "",
    ]
    return "\r\n".join(lines).encode() + content + b"\r\n\r\n"


def read(path: Path, *records: bytes, after: int = -1) -> list[Item]:
    packed = path.suffix == ".gz"
    path.write_bytes(b"".join(gzip.compress(each) if packed else each for each in records))
    return list(open_input(str(path)).items(after))


@pytest.fixture(params=["a.warc", "a.warc.gz"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return tmp_path / str(request.param)


def test_a_response_becomes_a_page(path: Path) -> None:
    (item,) = read(path, record("https://a.example/", http()))
    assert item.page is not None
    assert (item.page.url, item.page.html) == ("https://a.example/", BODY)
    assert (item.page.fetched_at, item.page.content_type) == ("2026-01-02T03:04:05Z", "text/html; charset=koi8-r")


def test_other_records_are_skipped_and_counted(path: Path) -> None:
    records = [
        record("https://a.example/0", b"software: test\r\n", kind="warcinfo"),
        record("https://a.example/1", b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n", kind="request"),
        record("https://a.example/2", http(status="404 Not Found")),
        record("https://a.example/3", http(status="301 Moved")),
        record("https://a.example/4", http(kind="image/png")),
        record("https://a.example/5", http(kind="text/css")),
        record("https://a.example/6", http(kind="application/xhtml+xml")),
        record("https://a.example/7", http(kind="")),
        record("https://a.example/8", http(status="204 No Content")),
    ]
    assert [item.number for item in read(path, *records)] == [6, 7, 8]
    assert [item.number for item in read(path, *records, after=6)] == [7, 8]


def raw_deflate(data: bytes) -> bytes:
    return zlib.compress(data)[2:-4]


@pytest.mark.parametrize(
    ("encoding", "encoded"),
    [
        ("gzip", GZIPPED),
        ("X-GZIP", GZIPPED),
        ("deflate", zlib.compress(BODY)),
        ("deflate", raw_deflate(BODY)),
        ("br", brotli.compress(BODY)),
        ("identity", BODY),
        ("gzip, br", brotli.compress(GZIPPED)),
        ("gzip", BODY),  # decoded by the crawler, which did not change the header
    ],
)
@pytest.mark.parametrize("chunked", [False, True])
def test_bodies_are_decoded(path: Path, encoding: str, encoded: bytes, chunked: bool) -> None:
    headers = [f"Content-Encoding: {encoding}"]
    if chunked:
        headers.append("Transfer-Encoding: chunked")
        half = len(encoded) // 2
        parts = (encoded[:half], encoded[half:], b"")
        encoded = b"".join(f"{len(part):x};ext=1\r\n".encode() + part + b"\r\n" for part in parts)
    (item,) = read(path, record("https://a.example/", http(encoded, *headers)))
    assert item.page is not None
    assert item.page.html == BODY


@pytest.mark.parametrize(
    ("encoding", "encoded", "message"),
    [
        ("gzip", GZIPPED[:-12], "gzip: expected a complete body, got a truncated one"),
        ("gzip", GZIPPED[:12] + b"zzzzzzzzzzz", "content-encoding gzip: "),
        ("deflate", b"\x78\x9czzzzz", "content-encoding deflate: "),
        ("br", b"\xff\xff\xff\xff", "content-encoding br: "),
        ("br", brotli.compress(BODY)[:-4], "br: expected a complete body, got a truncated one"),
        ("zstd", BODY, "expected gzip, deflate or br, got zstd"),
    ],
)
def test_a_broken_body_is_rejected_and_the_others_are_read(
    path: Path, encoding: str, encoded: bytes, message: str
) -> None:
    broken = record("https://a.example/", http(encoded, f"Content-Encoding: {encoding}"))
    first, last = read(path, broken, record("https://b.example/", http()))
    assert message in (first.rejected or "")
    assert last.page is not None


def test_a_response_that_is_not_http_and_a_missing_url_are_rejected(path: Path) -> None:
    whole = record("https://b.example/", http())
    no_url = record("", http())
    items = read(path, record("https://a.example/", b"not http"), no_url, whole)
    assert [item.rejected for item in items] == [
        "expected an HTTP response with a status, got another response",
        "url: expected text, got nothing",
        None,
    ]


@pytest.mark.parametrize("share", [0.3, 0.5, 0.7, 0.9])
def test_a_truncated_file_is_reported(path: Path, share: float) -> None:
    good, second = record("https://a.example/", http()), record("https://b.example/", http())
    if path.suffix == ".gz":
        good, second = gzip.compress(good), gzip.compress(second)
    path.write_bytes(good + second[: int(share * len(second))])
    first, last = open_input(str(path)).items()
    assert first.page is not None
    assert "expected" in (last.rejected or "")


def test_reading_ends_where_record_boundaries_are_lost(path: Path) -> None:
    junk = b"words words words\r\n\r\n" * 20
    first, last = read(path, record("https://a.example/", http()), junk, record("https://b.example/", http()))
    assert first.page is not None
    assert (last.rejected or "").startswith("expected a WARC record")
    assert (last.rejected or "").endswith("is not read")
    assert list(open_input(str(path)).items(after=last.number)) == []


def test_a_record_without_a_length_is_rejected(path: Path) -> None:
    broken = b"WARC/1.0\r\nno header\r\n\r\n"
    items = read(path, record("https://a.example/", http()), broken, record("https://b.example/", http()))
    assert [item.page.url for item in items if item.page] == ["https://a.example/", "https://b.example/"]


def test_a_wrong_length_is_reported(path: Path) -> None:
    items = read(path, record("https://a.example/", http(), length=5000))
    assert [item.page for item in items] == [None]
    assert "expected a body of" in (items[0].rejected or "")


def test_a_file_that_is_not_warc(tmp_path: Path) -> None:
    path = tmp_path / "a.warc"
    path.write_bytes(b"<html>" * 1000)
    (item,) = open_input(str(path)).items()
    assert "expected a WARC record" in (item.rejected or "")


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br"])
def test_a_decompression_bomb_is_rejected(encoding: str) -> None:
    data = b"\0" * 10_000_000
    packed = {"gzip": gzip.compress, "deflate": zlib.compress, "br": brotli.compress}[encoding](data)
    with pytest.raises(InvalidPage, match=f"{encoding}: expected at most 1000000 bytes, got more"):
        decoded_body(packed, "", encoding, 1_000_000)


@given(body=st.binary(max_size=200), encoding=st.sampled_from(["gzip", "deflate", "br", "gzip,br", ",", "x"]))
def test_any_bytes_raise_only_invalid_page(body: bytes, encoding: str) -> None:
    for prefix in (b"", b"\x1f\x8b\x08", b"\x78\x9c", b"5\r\n", b"ffffffff\r\n"):
        with suppress(InvalidPage):
            decoded_body(prefix + body, "chunked", encoding, 10_000)
