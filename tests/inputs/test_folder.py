"""Tests of folders of pages."""

import os
from pathlib import Path

import pytest

from neardup.errors import InputError
from neardup.inputs import open_input
from neardup.inputs.folder import FolderSource


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


def resumed(folder: Path, count: int, unfinished: int = 0) -> list[tuple[int, str | None]]:
    """Process the folder with a record of processed files. Return the numbers and URLs of the items."""
    source = open_input(str(folder))
    assert isinstance(source, FolderSource)
    source.resume(folder / "record", count, unfinished)
    items = list(source.items(after=count - 1))
    source.save(count + len(items))
    assert source.bytes_read == source.bytes_total
    return [(item.number, item.page.url.removeprefix("file:///") if item.page else None) for item in items]


def test_files_that_are_new_since_the_last_run_are_read_wherever_they_sort(folder: Path) -> None:
    assert [url for _, url in resumed(folder, 0)] == [
        "a.HTM", "b.html", "%C3%BC.html", "sub/c%20d.txt", "sub/deep/e.xhtml",
    ]  # fmt: skip
    for name in ("0.html", "sub/d.html", "z.html"):
        (folder / name).write_text("new")
    (folder / "b.html").unlink()
    assert resumed(folder, 5) == [(5, "0.html"), (6, "z.html"), (7, "sub/d.html")]
    assert resumed(folder, 8) == []


def test_items_of_a_save_that_was_cut_off_are_repeated_in_order_before_new_ones(folder: Path) -> None:
    (folder / "c.html").symlink_to(folder / "gone")
    assert resumed(folder, 0)[1:4] == [(1, "b.html"), (2, None), (3, "%C3%BC.html")]
    (folder / "0.html").write_text("new")
    (folder / "c.html").unlink()
    (folder / "c.html").write_text("It could not be read before, so its number must not get a page.")
    assert resumed(folder, 1, 3) == [
        (1, "b.html"), (2, None), (3, "%C3%BC.html"), (4, "0.html"), (5, "sub/c%20d.txt"), (6, "sub/deep/e.xhtml"),
    ]  # fmt: skip


def test_a_page_of_a_save_that_was_cut_off_must_not_be_gone(folder: Path) -> None:
    resumed(folder, 0)
    (folder / "b.html").rename(folder / "c.html")
    with pytest.raises(InputError, match="expected the page of item 1 again, got a file that was removed or renamed"):
        resumed(folder, 1, 3)
    (folder / "b.html").symlink_to(folder / "gone")
    with pytest.raises(InputError, match=r"expected the page of item 1 again, got b\.html: "):
        resumed(folder, 1, 3)
