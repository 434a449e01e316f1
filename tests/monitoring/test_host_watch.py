"""Tests of the detection of the host that loses most of its pages, among more hosts than are kept."""

import logging
import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from prometheus_client import REGISTRY

from neardup.matching.match import Match, match
from neardup.matching.rule import Thresholds
from neardup.messages.document_columns import DocumentColumns
from neardup.messages.settled import Batch
from neardup.monitoring.host_watch import HostWatch
from tests.support.documents import document

_MATCH = match(document(1, 1), document(0, 1), Thresholds())
assert _MATCH is not None
MATCH: Match = replace(_MATCH, url="http://first.example/")


def batch(pages: Sequence[tuple[str, Match | None]]) -> Batch:
    documents = [document(offset, 1, url=url) for offset, (url, _) in enumerate(pages)]
    return Batch("v", DocumentColumns.from_documents(documents), [found for _, found in pages])


def pages(host: str, count: int, duplicates: int) -> list[tuple[str, Match | None]]:
    return [(f"http://{host}/{number}", MATCH if number < duplicates else None) for number in range(count)]


def watch(**options: int) -> HostWatch:
    return HostWatch(5, **({"least_pages": 20} | options))


def test_the_worst_host_has_the_highest_share_and_enough_pages() -> None:
    watched = watch()
    watched.take(batch([*pages("a", 100, 10), *pages("b", 40, 30), *pages("few", 19, 19)]))
    assert watched.worst() == ("b", 0.75)
    assert REGISTRY.get_sample_value("neardup_host_duplicate_ratio", {"partition": "5"}) == 0.75
    watched.close()
    assert REGISTRY.get_sample_value("neardup_host_duplicate_ratio", {"partition": "5"}) is None


def test_no_host_is_reported_before_it_has_enough_pages() -> None:
    watched = watch()
    watched.take(batch(pages("few", 19, 19)))
    assert watched.worst() == ("", 0.0)


def test_a_recrawled_page_is_not_a_loss() -> None:
    watched = watch()
    again = [(url, replace(MATCH, url=url)) for url, _ in pages("a", 50, 0)]
    watched.take(batch([*again, *pages("a", 25, 5)]))
    assert watched.worst() == ("a", 0.2)


def test_a_large_host_is_kept_among_many_small_ones() -> None:
    draw = random.Random(1)
    watched = watch(hosts=50)
    rest = [page for number in range(3000) for page in pages(f"small{number}", 1, 0)]
    all_of_them = rest + pages("walled", 300, 294)
    draw.shuffle(all_of_them)
    for start in range(0, len(all_of_them), 100):
        watched.take(batch(all_of_them[start : start + 100]))
        assert len(watched._tallies) <= 50
    host, share = watched.worst()
    assert host == "walled"
    assert share > 0.95


def test_old_pages_lose_weight() -> None:
    watched = watch(window=200)
    watched.take(batch(pages("a", 200, 200)))
    assert watched.worst() == ("a", 1.0)
    for _ in range(3):
        watched.take(batch(pages("a", 200, 0)))
    assert watched.worst()[1] < 0.1


def test_the_log_names_a_host_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    watched = watch()
    for _ in range(3):
        watched.take(batch(pages("walled.example", 40, 39)))
    [line] = caplog.messages
    assert line == "host walled.example: of 40 recent pages 39 are duplicates of other urls"
