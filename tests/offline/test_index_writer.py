"""Tests of the index of an offline pass: against a dictionary, with hostile urls, and during its replacement."""

import sqlite3
import threading
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neardup.errors import CorruptState, NotClustered, WrongState
from neardup.offline.corpus.columns import ColumnStore
from neardup.offline.passes.recluster import open_documents
from neardup.offline.queries.index_reader import FILE, Entry, IndexReader
from neardup.offline.queries.index_writer import build_index, fetch_time
from neardup.types import DocumentId
from tests.offline.by_hand import run_pass, write_results
from tests.support.documents import document, utf8

HOSTILE = [
    "http://a.example/'; DROP TABLE documents; --",
    'http://a.example/" OR 1=1 --',
    "http://a.example/%' OR url LIKE '%",
    "http://a.example/<script>alert(1)</script>",
    "http://a.example/\x00after\x1b[31mred\r\n\t",
    "http://a.example/\N{RIGHT-TO-LEFT OVERRIDE}\N{GRINNING FACE}",
    "u" * 100_000,
    "?",
    "",
]


def row(offset: int, url: str, cluster: str | None = None, **more: Any) -> dict[str, Any]:
    name = f"0:{offset}"
    return {
        "timestamp": offset, "partition": 0, "offset": offset, "url": url, "fetched_at": None, "size": 1,
        "cluster": cluster or name, "relation": "near" if cluster else "first", "resemblance": 0.5 if cluster else None,
        "cluster_size": 1, "representative": cluster or name, "representative_url": url, **more,
    }  # fmt: skip


def indexed(results: Path, rows: list[dict[str, Any]], contained: list[dict[str, Any]] | None = None) -> IndexReader:
    write_results(results, rows, contained or ())
    return IndexReader(build_index(results))


def newest(rows: list[dict[str, Any]]) -> list[DocumentId]:
    ordered = sorted(rows, key=lambda each: (fetch_time(each["fetched_at"], each["timestamp"]), id_of(each)))
    return [id_of(each) for each in reversed(ordered)]


def id_of(each: dict[str, Any]) -> DocumentId:
    return DocumentId(each["timestamp"], each["partition"], each["offset"])


@st.composite
def results(draw: st.DrawFn) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    urls = draw(st.lists(utf8 | st.sampled_from(HOSTILE), min_size=1, max_size=4))
    times = st.none() | utf8 | st.sampled_from(["2026-01-01T00:00:00Z", "2026-01-02", "1999-12-31T23:59:59+14:00"])
    rows = []
    for offset in range(draw(st.integers(0, 8))):
        cluster = draw(st.none() | st.integers(0, offset).map(lambda first: f"0:{first}"))
        timestamp = draw(st.integers(-(2**63), 2**63 - 1))
        rows.append(row(offset, draw(st.sampled_from(urls)), cluster, timestamp=timestamp, fetched_at=draw(times)))
    names = st.integers(0, max(len(rows) - 1, 0)).map(lambda offset: f"0:{offset}")
    pair = st.fixed_dictionaries({"document": names, "container": names, "containment": st.floats(0, 1, width=32)})
    return rows, draw(st.lists(pair, max_size=5, unique_by=lambda each: (each["document"], each["container"])))


@given(results())
@settings(deadline=None, max_examples=60)
def test_the_index_equals_a_dictionary(
    tmp_path_factory: pytest.TempPathFactory, made: tuple[list[dict[str, Any]], list[dict[str, Any]]]
) -> None:
    rows, contained = made
    with indexed(tmp_path_factory.mktemp("index"), rows, contained) as index:
        for url in {each["url"] for each in rows} | {"unknown"}:
            of_url = [each for each in rows if each["url"] == url]
            assert [entry.id for entry in index.documents_of(url)] == newest(of_url)
        for each in rows:
            entry = index.entry(id_of(each))
            assert entry is not None
            assert {name: getattr(entry, name) for name in each if name != "representative_url"} == {
                name: value for name, value in each.items() if name != "representative_url"
            }
            assert index.url_of(each["representative"]) == rows[int(each["representative"][2:])]["url"]
            members = [other for other in rows if other["cluster"] == each["cluster"]]
            by_url: dict[str, list[dict[str, Any]]] = {}
            for member in members:
                by_url.setdefault(member["url"], []).append(member)
            last = {newest(some)[0] for some in by_url.values()}
            assert [other.id for other in index.urls_in(each["cluster"], 100)] == [
                place for place in newest(members) if place in last
            ]
            others = newest([other for other in members if other["url"] != each["url"]])
            found = index.elsewhere(entry)
            assert (found and found.id) == (others[0] if others else None)
            containers = {
                (pair["container"], pair["containment"]) for pair in contained if pair["document"] == entry.document
            }
            assert {(other.document, much) for much, other in index.containers(entry.document, 100)} == containers
            contents = {
                (pair["document"], pair["containment"]) for pair in contained if pair["container"] == entry.document
            }
            assert {(other.document, much) for much, other in index.contents(entry.document, 100)} == contents
        again = {url: [entry.id for entry in some] for url, some in groupby(index.fetched_again(), lambda e: e.url)}
        several = {each["url"] for each in rows if sum(other["url"] == each["url"] for other in rows) > 1}
        assert again == {url: newest([each for each in rows if each["url"] == url])[::-1] for url in several}


@pytest.mark.parametrize("url", HOSTILE, ids=lambda url: ascii(url)[:30])
def test_a_hostile_url_is_handled_like_any_other(tmp_path: Path, url: str) -> None:
    with indexed(tmp_path, [row(0, url), row(1, "http://b.example/", "0:0"), row(2, "http://c.example/")]) as index:
        assert [entry.url for entry in index.documents_of(url)] == [url]
        assert [entry.url for entry in index.urls_in("0:0", 10)] == ["http://b.example/", url]
        assert index.documents_of(url + "'") == []


def test_a_missing_document_is_a_clear_error(tmp_path: Path) -> None:
    with indexed(tmp_path, []) as index, pytest.raises(CorruptState, match="expected the document 0:7"):
        index.url_of("0:7")


def test_a_url_that_is_not_text_is_unknown(tmp_path: Path) -> None:
    with indexed(tmp_path, [row(0, "http://a.example/")]) as index:
        assert index.documents_of("http://a.example/\udcff") == []


def test_a_limit_keeps_the_newest(tmp_path: Path) -> None:
    with indexed(tmp_path, [row(n, f"http://{n}.example/", "0:0" if n else None) for n in range(5)]) as index:
        assert [entry.offset for entry in index.urls_in("0:0", 2)] == [4, 3]


@pytest.mark.parametrize(
    ("fetched_at", "moment"),
    [
        ("1970-01-01T00:00:01Z", 1000),
        ("1970-01-01T00:00:01", 1000),
        ("1970-01-01T01:00:01+01:00", 1000),
        ("1970-01-02", 86_400_000),
        ("yesterday", 7),
        ("", 7),
        (None, 7),
        ("0001-01-01T00:00:00+14:00", -62_135_647_200_000),
    ],
)
def test_the_fetch_time_is_that_of_the_crawler_if_it_is_valid(fetched_at: str | None, moment: int) -> None:
    assert fetch_time(fetched_at, 7) == moment


def test_rows_of_gathered_documents_and_of_kept_copies(tmp_path: Path) -> None:
    first = document(0, 1)
    copy = document(1, 1, tokens="tokens 0:0")
    other = document(2, 2)
    run_pass(tmp_path, [first, copy, other])
    with IndexReader(tmp_path / "clusters" / FILE) as index:
        entries = [index.entry(each.id) for each in (first, copy, other)]
    known = [entry for entry in entries if isinstance(entry, Entry)]
    assert [entry.kept for entry in known] == ["0:0", "0:0", "0:2"]
    documents = open_documents(tmp_path / "clusters")
    assert [documents.document(entry.row) for entry in known] == [first.id, copy.id, other.id]
    assert [documents.document(entry.kept_row) for entry in known] == [first.id, first.id, other.id]


def test_missing_results_are_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(NotClustered, match="run `neardup recluster`"):
        build_index(tmp_path)
    with pytest.raises(NotClustered, match="run `neardup recluster`"):
        IndexReader(tmp_path / FILE)


def test_invalid_results_are_a_clear_error_and_leave_the_old_index(tmp_path: Path) -> None:
    with indexed(tmp_path, [row(0, "http://a.example/")]):
        (tmp_path / "contained.parquet").write_bytes(b"torn")
    with pytest.raises(CorruptState, match="expected results"):
        build_index(tmp_path)
    with IndexReader(tmp_path / FILE) as index:
        assert index.documents_of("http://a.example/")


def test_results_without_a_column_are_a_clear_error(tmp_path: Path) -> None:
    write_results(tmp_path, [row(0, "http://a.example/")])
    whole = pyarrow.parquet.read_table(tmp_path / "clusters.parquet")
    pyarrow.parquet.write_table(whole.drop_columns("cluster"), tmp_path / "clusters.parquet")
    with pytest.raises(CorruptState, match="cluster"):
        build_index(tmp_path)


def test_results_in_several_parts_are_one(tmp_path: Path) -> None:
    for number in range(2):
        part = tmp_path / "parts"
        write_results(part, [row(number, "http://a.example/")])
        (tmp_path / "clusters.parquet").mkdir(exist_ok=True)
        (part / "clusters.parquet").rename(tmp_path / "clusters.parquet" / f"part-{number}.parquet")
    (part / "contained.parquet").rename(tmp_path / "contained.parquet")
    with IndexReader(build_index(tmp_path)) as index:
        assert [entry.document for entry in index.documents_of("http://a.example/")] == ["0:1", "0:0"]


def test_documents_that_were_not_gathered_are_a_clear_error(tmp_path: Path) -> None:
    write_results(tmp_path, [row(0, "http://a.example/")])
    with pytest.raises(WrongState, match="0:0"):
        build_index(tmp_path, ColumnStore(tmp_path / "nothing"))


def test_an_index_of_another_version_is_a_clear_error(tmp_path: Path) -> None:
    indexed(tmp_path, []).__exit__()
    database = sqlite3.connect(tmp_path / FILE)
    database.execute("PRAGMA user_version = 99")
    database.close()
    with pytest.raises(WrongState, match="expected version 2 of an index, got 99"):
        IndexReader(tmp_path / FILE)


@pytest.mark.parametrize("torn", [b"", b"SQLite format 3\0 and then nothing", b"x" * 9000])
def test_a_damaged_index_is_a_clear_error(tmp_path: Path, torn: bytes) -> None:
    (tmp_path / FILE).write_bytes(torn)
    with pytest.raises((CorruptState, WrongState), match="run `neardup recluster`"):
        IndexReader(tmp_path / FILE)


def test_an_altered_entry_is_a_clear_error(tmp_path: Path) -> None:
    indexed(tmp_path, [row(0, "http://a.example/"), row(1, "http://b.example/", "0:0")]).__exit__()
    database = sqlite3.connect(tmp_path / FILE)
    database.execute("UPDATE documents SET cluster_size = 7 WHERE offset = 1")
    database.commit()
    database.close()
    with IndexReader(tmp_path / FILE) as index:
        assert index.url_of("0:0") == "http://a.example/"
        with pytest.raises(CorruptState, match=r"expected checksum \d+ of an entry, got \d+; run `neardup recluster`"):
            index.documents_of("http://b.example/")


def test_readers_never_see_a_part_of_an_index_while_it_is_replaced(tmp_path: Path) -> None:
    """Generation n has n documents with one url. A reader must see a complete generation, and never an older one."""
    url = "http://a.example/"

    def generation(number: int) -> None:
        write_results(tmp_path, [row(offset, url) for offset in range(number)])
        build_index(tmp_path)

    generation(1)
    done = threading.Event()
    wrong: list[str] = []

    def read() -> None:
        before = 1
        while not done.is_set():
            with IndexReader(tmp_path / FILE) as index:
                seen = [len(index.documents_of(url)) for _ in range(3)]
            if len(set(seen)) > 1 or seen[0] < before:
                wrong.append(f"{before} and then {seen}")
            before = seen[0]

    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()
    for number in range(2, 20):
        generation(number)
    done.set()
    for reader in readers:
        reader.join()
    assert not wrong
    assert list(tmp_path.glob("*.new")) == []
