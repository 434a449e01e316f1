"""Tests of folders of pages."""

import os
from pathlib import Path

import pytest

from neardup.inputs import open_input


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("b.html", "a.HTM", "sub/c d.txt", "sub/deep/e.xhtml", "sub/ignored.png", "ü.html"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(f"<p>{name}".encode())
    return tmp_path


def test_files_are_read_in_the_order_of_their_paths(folder: Path) -> None:
    source = open_input(str(folder))
    items = list(source.items())
    assert [(item.number, item.page and item.page.url) for item in items] == [
        (0, "file:///a.HTM"),
        (1, "file:///b.html"),
        (2, "file:///%C3%BC.html"),
        (3, "file:///sub/c%20d.txt"),
        (4, "file:///sub/deep/e.xhtml"),
    ]
    kinds = [item.page.content_type for item in items if item.page]
    assert kinds == ["text/html", "text/html", "text/html", "text/plain", "application/xhtml+xml"]
    assert source.bytes_read == source.bytes_total == sum(len(item.page.content) for item in items if item.page)


def test_a_prefix_changes_the_urls(folder: Path) -> None:
    first = next(open_input(str(folder), url_prefix="https://a.example/").items())
    assert first.page is not None
    assert first.page.url == "https://a.example/a.HTM"


def test_a_single_file(folder: Path) -> None:
    (item,) = open_input(str(folder / "b.html")).items()
    assert item.page is not None
    assert (item.page.url, item.page.html) == ("file:///b.html", b"<p>b.html")


def test_a_run_resumes_after_the_items_that_it_has_read(folder: Path) -> None:
    source = open_input(str(folder))
    assert [item.number for item in source.items(after=2)] == [3, 4]
    assert source.bytes_read == source.bytes_total


def test_an_empty_folder(tmp_path: Path) -> None:
    source = open_input(str(tmp_path))
    assert (list(source.items()), source.bytes_total) == ([], 0)


def test_an_unreadable_file_is_rejected_and_the_others_are_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "b.html").unlink()
    (folder / "b.html").symlink_to(folder / "gone")
    monkeypatch.setattr("neardup.inputs.folder.MAX_ITEM_BYTES", 100)
    (folder / "a.HTM").write_bytes(b"x" * 101)
    items = list(open_input(str(folder)).items())
    assert items[0].rejected == "a.HTM: expected files of at most 100 bytes, got 101"
    assert (items[1].rejected or "").startswith("b.html: ")
    assert all(item.page for item in items[2:])


def test_names_that_are_not_utf8_are_kept(tmp_path: Path) -> None:
    try:
        (Path(os.fsdecode(bytes(tmp_path) + b"/\xff.html"))).write_bytes(b"x")
    except OSError:
        pytest.skip("this file system has only UTF-8 names")
    (item,) = open_input(str(tmp_path)).items()
    assert item.page is not None
    assert item.page.url == "file:///%FF.html"


def test_circular_links_are_not_followed(folder: Path) -> None:
    (folder / "sub" / "circle").symlink_to(folder)
    assert len(list(open_input(str(folder)).items())) == 5
