"""Tests of the report of a pass: as text, as JSON, and as an HTML page into which no text of the web is injected."""

import json
import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.offline.report.report import Host, Phase, Report
from neardup.offline.report.text import as_json, html, text
from neardup.util.formatting import format_bytes, format_seconds, printable, shortened
from tests.offline.test_index_writer import HOSTILE

REPORT = Report(
    engine="local", signature_version="nd1;all", documents=1000, new_documents=200, identical=100, same_text=50,
    same_shingles=25, near=225, clusters=600, largest=70, sizes={70: 1, 1: 500, 3: 50, 2: 40, 4: 9},
    pairs={"shingles": 4000, "hamming": 300}, common_keys={"shingles": 12}, edges=2500, contained=17, overturned=3,
    transitive_clusters=550, transitive_largest=300, hosts=[Host("a.example", 400, 300), Host("b.example", 10, 5)],
    warnings=["a large cluster"], phases=[Phase("gather", 1.25, 1_500_000), Phase("pairs", 300.0, 0, True)],
    seconds=301.25,
)  # fmt: skip
EMPTY = Report(
    engine="local", signature_version="", documents=0, new_documents=0, identical=0, same_text=0, same_shingles=0,
    near=0, clusters=0, largest=0, sizes={}, pairs={}, common_keys={}, edges=0, contained=0, overturned=0,
    transitive_clusters=0, transitive_largest=0,
)  # fmt: skip


class Page(HTMLParser):
    """Tags, texts and attributes of a page; also checks that every tag is closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attributes
        if tag != "meta":
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attributes

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def named(name: str) -> Report:
    """Return a report with this name in every field that may contain text of the web."""
    fields = {field: getattr(REPORT, field) for field in Report.__slots__}
    changed = {
        "hosts": [Host(name, 2, 1)], "warnings": [name], "pairs": {name: 1}, "common_keys": {name: 1}, "engine": name,
        "phases": [Phase(name, 1.0, 1)], "signature_version": name,
    }  # fmt: skip
    return Report(**(fields | changed))


def test_the_report_as_text() -> None:
    assert text(REPORT).splitlines() == [
        "1,000 documents (200 new): 600 clusters, the largest of 70",
        "not the first of their cluster: 100 identical, 50 same-text, 25 same-shingles, 225 near",
        "contained in another: 17; verdicts overturned: 3",
        "pairs: 4,000 by shingles, 300 by hamming; of these 2,500 resemble each other",
        "keys too common to use: 12 by shingles",
        "by the transitive rule: 550 clusters, the largest of 300",
        "hosts with most duplicates:",
        "  a.example: 300 of 400",
        "  b.example: 5 of 10",
        "5 min 1 s on local:",
        "  gather      1.2 s     1.5 MB",
        "  pairs   5 min 0 s        0 B  (done before)",
        "warning: a large cluster",
    ]


def test_the_report_as_json_has_every_field() -> None:
    body = json.loads(as_json(REPORT))
    assert list(body) == list(Report.__slots__)
    assert body["sizes"] == {"1": 500, "2": 40, "3": 50, "4": 9, "70": 1}
    assert body["hosts"][0] == {"name": "a.example", "documents": 400, "duplicates": 300}
    assert body["phases"][1] == {"name": "pairs", "seconds": 300.0, "bytes": 0, "repeated": True}


def test_the_page_shows_clusters_by_size_hosts_and_phases() -> None:
    page = Page(html(REPORT))
    assert page.tags.count("svg") == 4
    shown = " ".join(page.texts)
    for words in (
        "600 clusters of 1,000 documents",
        "65 to 128",
        "300 of 400",
        "5 min 0 s",
        "1.5 MB",
        "a large cluster",
    ):
        assert words in shown


def test_bars_of_cluster_sizes_are_logarithmic() -> None:
    sizes = html(REPORT).split("Clusters by size")[1].split("</svg>")[0]
    widths = [float(each) for each in re.findall(r'class="all"[^>]*width="([\d.]+)"', sizes)]
    # 500 of 1, 40 of 2, 59 of 3 to 4, none of 5 to 64, one of 65 to 128
    assert widths == pytest.approx([440.0, 262.9, 289.9, 0, 0, 0, 0, 49.1], abs=0.1)


def test_the_page_loads_no_resources_and_has_no_scripts() -> None:
    page = Page(html(REPORT))
    assert not {"script", "img", "link", "iframe", "object", "a", "form"} & set(page.tags)
    assert not [name for name, _ in page.attributes if name in ("src", "href") or name.startswith("on")]
    assert "default-src 'none'" in html(REPORT)
    assert not re.search(r"https?:|url\(|@import", html(REPORT))


def test_a_pass_over_nothing_has_a_report() -> None:
    assert Page(html(EMPTY)).texts
    assert "0 documents" in text(EMPTY)
    assert json.loads(as_json(EMPTY))["clusters"] == 0


@pytest.mark.parametrize(
    "name", [*HOSTILE, "</text></svg><script>alert(1)</script>", '" onload="alert(1)', "<!--", "]]>"]
)
def test_a_hostile_name_is_only_text(name: str) -> None:
    harmless, page = Page(html(named("harmless"))), Page(html(named(name)))
    assert page.tags == harmless.tags
    assert [each for each, _ in page.attributes] == [each for each, _ in harmless.attributes]
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", html(named(name)) + text(named(name)))


@given(st.text())
def test_any_name_is_only_text(name: str) -> None:
    assert Page(html(named(name))).tags == Page(html(named("harmless"))).tags
    assert len(text(named(name)).splitlines()) == len(text(named("harmless")).splitlines())
    html(named(name)).encode()


@pytest.mark.parametrize(
    ("seconds", "words"), [(0, "0.0 s"), (119.9, "119.9 s"), (125.2, "2 min 5 s"), (7300, "2 h 1 min")]
)
def test_times_in_words(seconds: float, words: str) -> None:
    assert format_seconds(seconds) == words


@pytest.mark.parametrize(("count", "words"), [(0, "0 B"), (999, "999 B"), (1500, "1.5 KB"), (2e15, "2000.0 TB")])
def test_format_bytes(count: float, words: str) -> None:
    assert format_bytes(count) == words


def test_long_names_are_shortened_and_control_characters_escaped() -> None:
    assert shortened("abcdef", 4) == "abc…"
    assert shortened("abcd", 4) == "abcd"
    assert printable("é\x1b\n\u202e") == "é\\x1b\\n\\u202e"
