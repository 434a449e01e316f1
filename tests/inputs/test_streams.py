"""Tests of JSON lines and msgpack, from files and from standard input."""

import gzip
import io
import json
from pathlib import Path

import msgpack
import pytest

from neardup.errors import InputError
from neardup.inputs import Item, open_input
from neardup.inputs.json_lines import read_json_lines
from neardup.messages.pages import write_page
from neardup.types import Page

PAGES = [Page(f"https://a.example/{n}", html=f"<p>page {n} über alles".encode(), fetched_at="2026") for n in range(5)]


def json_line(page: Page) -> bytes:
    fields = {"url": page.url, "html": (page.html or b"").decode(), "fetched_at": page.fetched_at}
    return json.dumps(fields).encode() + b"\n"


JSONL = b"".join(map(json_line, PAGES))
MSGPACK = b"".join(map(write_page, PAGES))


def urls(items: list[Item]) -> list[str | None]:
    """Return the urls, with None for rejected items."""
    return [item.page.url if item.page else None for item in items]


ALL = [page.url for page in PAGES]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("name", "data", "first"),
    [("a.jsonl", JSONL, 1), ("a.ndjson", JSONL, 1), ("a.json", JSONL, 1), ("a.msgpack", MSGPACK, 0)],
)
def test_pages_come_with_their_numbers(tmp_path: Path, name: str, data: bytes, first: int, packed: bool) -> None:
    path = tmp_path / (name + ".gz" if packed else name)
    path.write_bytes(gzip.compress(data) if packed else data)
    source = open_input(str(path))
    items = list(source.items())
    assert urls(items) == ALL
    assert [(item.source, item.number) for item in items] == [(str(path), first + n) for n in range(5)]
    assert [item.page.html for item in items if item.page] == [page.html for page in PAGES]
    assert source.bytes_total == source.bytes_read == path.stat().st_size


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("data", [JSONL, MSGPACK])
def test_the_format_of_standard_input_is_detected_by_its_first_byte(data: bytes, packed: bool) -> None:
    source = open_input("-", stdin=io.BytesIO(gzip.compress(data) if packed else data))
    assert source.bytes_total is None
    assert urls(list(source.items())) == ALL


def test_an_unknown_format_on_standard_input_is_reported() -> None:
    (item,) = open_input("-", stdin=io.BytesIO(b"<html>words\n")).items()
    assert item.rejected is not None
    assert "expected a JSON object" in item.rejected


@pytest.mark.parametrize("name", ["a.jsonl", "a.msgpack", "a.warc", "a.jsonl.gz", "a.warc.gz"])
def test_an_empty_file_has_no_items(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"")
    assert list(open_input(str(tmp_path / name)).items()) == []
    assert list(open_input("-", stdin=io.BytesIO()).items()) == []


@pytest.mark.parametrize(("name", "data", "first"), [("a.jsonl", JSONL, 1), ("a.msgpack", MSGPACK, 0)])
def test_a_run_resumes_after_the_items_that_it_has_read(tmp_path: Path, name: str, data: bytes, first: int) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    assert urls(list(open_input(str(path)).items(after=first + 2))) == ALL[3:]
    assert list(open_input(str(path)).items(after=first + 4)) == []


def test_a_bad_line_is_rejected_and_the_others_are_read(tmp_path: Path) -> None:
    lines = JSONL.splitlines(keepends=True)
    bad = [b"{nonsense\n", b"[1]\n", b'{"url": 7}\n', b"\xff\xfe\n", b"[" * 50_000 + b"\n"]
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"".join(line for pair in zip(lines, bad, strict=True) for line in pair) + b"\n\n" + lines[0])
    items = list(open_input(str(path)).items())
    assert urls(items) == [url for each in ALL for url in (each, None)] + ALL[:1]
    assert [item.number for item in items] == [*range(1, 11), 13]
    assert all("expected" in (item.rejected or "expected") for item in items)


def test_a_last_line_without_a_line_end_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(JSONL.rstrip(b"\n"))
    assert urls(list(open_input(str(path)).items())) == ALL


def test_a_huge_line_is_skipped_without_being_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("neardup.inputs.json_lines.MAX_ITEM_BYTES", 1000)
    data = json_line(PAGES[0]) + b'{"url": "' + b"x" * 5000 + b'"}\n' + json_line(PAGES[1]) + b"y" * 3000
    items = list(read_json_lines("-", io.BufferedReader(io.BytesIO(data)), -1))
    assert urls(items) == [ALL[0], None, ALL[1], None]
    assert items[1].rejected == "expected lines of at most 1000 bytes, got a longer one"


def test_a_huge_map_ends_the_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("neardup.inputs.msgpack_maps.MAX_ITEM_BYTES", 2**20)
    path = tmp_path / "a.msgpack"
    path.write_bytes(write_page(PAGES[0]) + write_page(Page("u", html=b"x" * 2**21)) + MSGPACK)
    first, last = open_input(str(path)).items()
    assert first.page == PAGES[0]
    assert last.rejected is not None
    assert last.rejected.startswith("expected ")
    assert last.rejected.endswith("is not read")


@pytest.mark.parametrize(("name", "data"), [("a.jsonl.gz", JSONL), ("a.msgpack.gz", MSGPACK)])
@pytest.mark.parametrize("cut", [1, 9, 30, 60])
def test_truncated_gzip_is_read_to_its_end_and_reported(tmp_path: Path, name: str, data: bytes, cut: int) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.compress(data)[:-cut])
    *pages, last = open_input(str(path)).items()
    assert urls(pages) == ALL[: len(pages)]
    assert (
        last.rejected
        == f"expected more gzip data, got the end of the file: it is truncated; the rest of {path} is not read"
    )
    assert list(open_input(str(path)).items(after=last.number)) == []


def test_corrupt_gzip_is_reported(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(JSONL))
    packed[40:60] = b"\0" * 20
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(packed)
    *_, last = open_input(str(path)).items()
    assert "corrupt" in (last.rejected or "")


@pytest.mark.parametrize("cut", [1, 20])
def test_a_truncated_map_is_reported(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "a.msgpack"
    path.write_bytes(MSGPACK[:-cut])
    *pages, last = open_input(str(path)).items()
    assert urls(pages) == ALL[:4]
    assert "expected a whole msgpack map" in (last.rejected or "")


def test_an_invalid_page_is_one_rejected_map_and_broken_bytes_end_the_input(tmp_path: Path) -> None:
    path = tmp_path / "a.msgpack"
    path.write_bytes(
        write_page(PAGES[0]) + msgpack.packb({"url": 1}) + msgpack.packb(7) + write_page(PAGES[1]) + b"\xc1"
    )
    items = list(open_input(str(path)).items())
    assert urls(items) == [ALL[0], None, None, ALL[1], None]
    assert "expected a msgpack map" in (items[-1].rejected or "")


def test_text_that_is_not_utf8_is_one_rejected_map(tmp_path: Path) -> None:
    path = tmp_path / "a.msgpack"
    bad = msgpack.packb({"url": "https://b.example/x", "html": "x"}).replace(b"/x", b"/\xff")
    path.write_bytes(bad + MSGPACK)
    items = list(open_input(str(path)).items())
    assert urls(items) == [None, *ALL]


def test_names_without_a_known_extension_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.docx").write_bytes(b"")
    with pytest.raises(InputError, match=r"expected a folder, - for standard input, or a name that ends in \.jsonl"):
        open_input(str(tmp_path / "a.docx"))
    for missing in ("no.jsonl", "no.parquet", "no.html"):
        with pytest.raises(InputError, match="expected a readable file or folder, got: No such file"):
            open_input(str(tmp_path / missing))


def test_a_source_that_is_not_read_keeps_no_file_open(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(JSONL)
    source = open_input(str(path))
    assert (source.bytes_read, source.bytes_total) == (0, len(JSONL))
    path.unlink()
    (item,) = source.items()
    assert "cannot be read" in (item.rejected or "")


def test_standard_input_stays_open() -> None:
    given = io.BytesIO(JSONL)
    assert len(list(open_input("-", stdin=given).items())) == 5
    assert not given.closed
