"""Tests of Parquet files with several schemas."""

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from neardup.errors import InputError
from neardup.inputs import open_input

URLS = [f"https://a.example/{n}" for n in range(10)]
HTML = [f"<p>page {n}".encode() for n in range(10)]


def written(path: Path, **columns: object) -> Path:
    pq.write_table(pa.table({"url": URLS, **columns}), path, row_group_size=4)
    return path


@pytest.mark.parametrize("column", ["html", "content"])
@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.string(), pa.large_string()])
def test_rows_are_pages(tmp_path: Path, column: str, kind: pa.DataType) -> None:
    path = written(tmp_path / "a.parquet", **{column: pa.array(HTML, pa.binary()).cast(kind)})
    source = open_input(str(path))
    items = list(source.items())
    assert [(item.number, item.page and item.page.url) for item in items] == list(enumerate(URLS))
    assert [item.page.html for item in items if item.page] == HTML
    assert source.bytes_read == source.bytes_total == path.stat().st_size


@pytest.mark.parametrize("kind", [pa.binary(), pa.string()])
def test_text_stays_text_and_other_columns_are_read(tmp_path: Path, kind: pa.DataType) -> None:
    path = written(
        tmp_path / "a.parquet",
        text=pa.array(HTML, pa.binary()).cast(kind),
        fetched_at=[datetime(2026, 1, 2, tzinfo=UTC)] * 10,
        crawl=["c"] * 10,
        unrelated=list(range(10)),
    )
    first = next(open_input(str(path)).items())
    assert first.page is not None
    assert (first.page.text, first.page.html) == ("<p>page 0", None)
    assert (first.page.fetched_at, first.page.crawl) == ("2026-01-02T00:00:00+00:00", "c")


@pytest.mark.parametrize("after", range(-1, 10))
def test_a_run_resumes_after_the_items_that_it_has_read(tmp_path: Path, after: int) -> None:
    path = written(tmp_path / "a.parquet", html=HTML)
    assert [item.number for item in open_input(str(path)).items(after)] == list(range(after + 1, 10))


def test_a_row_without_content_is_rejected(tmp_path: Path) -> None:
    path = written(tmp_path / "a.parquet", html=[None, *HTML[1:]])
    items = list(open_input(str(path)).items())
    assert items[0].rejected == "expected exactly one of html and text, got both or neither"
    assert all(item.page for item in items[1:])


@pytest.mark.parametrize("columns", [{"body": HTML}, {}])
def test_missing_columns_are_named(tmp_path: Path, columns: dict[str, object]) -> None:
    path = written(tmp_path / "a.parquet", **columns)
    with pytest.raises(InputError, match="expected columns url and one of html, text, content, got url"):
        open_input(str(path))


@pytest.mark.parametrize("data", [b"", b"words", b"PAR1" * 5])
def test_a_file_that_is_not_parquet(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"a\.parquet: expected a Parquet file"):
        open_input(str(path))


def test_a_broken_row_group_is_rejected_and_the_others_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"url": URLS, "html": HTML}), path, row_group_size=4, compression="gzip")
    column = pq.ParquetFile(path).metadata.row_group(1).column(1)
    data = bytearray(path.read_bytes())
    start = column.dictionary_page_offset or column.data_page_offset
    data[start : start + column.total_compressed_size] = b"\xff" * column.total_compressed_size
    path.write_bytes(data)
    items = list(open_input(str(path)).items())
    assert [item.number for item in items] == [0, 1, 2, 3, 4, 8, 9]
    assert "expected a readable row group 1, got" in (items[4].rejected or "")
