import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
from hypothesis import given
from hypothesis import strategies as st

from neardup.offline.results.row_digests import UrlRows, _hashes
from tests.offline.results import clustered, write_results
from tests.support import naive

PLACES = st.tuples(st.integers(0, 9), st.integers(0, 2), st.integers(0, 6), st.integers(0, 3))
ROWS = st.lists(PLACES, max_size=25, unique_by=lambda place: (place[0], place[3])).map(
    lambda places: [
        clustered(offset, cluster, url=f"http://é.example/{url}", timestamp=timestamp)
        for offset, cluster, url, timestamp in places
    ]
)


def last_rows(rows: list[dict[str, Any]]) -> UrlRows:
    with tempfile.TemporaryDirectory() as directory:
        write_results(Path(directory), rows, [])
        return UrlRows.of(Path(directory) / "clusters.parquet")


def by_url(rows: list[dict[str, Any]]) -> dict[str, int]:
    """Return the row of each url's last document."""
    places = sorted(range(len(rows)), key=lambda place: (rows[place]["timestamp"], rows[place]["offset"]))
    return {rows[place]["url"]: place for place in places}


def published_fields(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("offset", "cluster", "relation", "representative", "representative_url"))


@given(ROWS, ROWS)
def test_files_differ_in_the_entries_of_their_urls(now: list[dict[str, Any]], before: list[dict[str, Any]]) -> None:
    now_at, before_at = by_url(now), by_url(before)
    new = [
        place
        for url, place in now_at.items()
        if url not in before_at or published_fields(before[before_at[url]]) != published_fields(now[place])
    ]
    gone = [place for url, place in before_at.items() if url not in now_at]
    comp, other = last_rows(now), last_rows(before)
    assert sorted(comp.row.tolist()) == sorted(now_at.values())
    assert comp.changed_from(other).tolist() == sorted(new)
    assert other.missing_in(comp).tolist() == sorted(gone)


def test_two_urls_with_half_of_a_digest_in_common_are_different() -> None:
    rows = np.arange(2)
    both = UrlRows(np.array([7, 7], np.uint64), np.array([1, 2], np.uint64), np.array([5, 6], np.uint64), rows)
    second = UrlRows(both.url[1:], both.check[1:], both.content[1:], rows[:1])
    assert second.missing_in(both).size == 0
    assert second.changed_from(both).size == 0
    assert both.missing_in(second).tolist() == [0]


@given(st.lists(st.text(max_size=9), max_size=20), st.integers(0, 20), st.integers(0, 20))
def test_a_part_of_a_column_has_the_digests_of_its_own_rows(texts: list[str], first: int, count: int) -> None:
    part = texts[first : first + count]
    comp = _hashes(pyarrow.array(texts, pyarrow.string()).slice(first, count), np.zeros(len(part), np.uint64))
    assert comp.tolist() == [naive.xxh64(text.encode()) for text in part]
