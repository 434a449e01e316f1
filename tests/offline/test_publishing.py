import json
from pathlib import Path
from typing import Any

import pytest

from neardup.errors import CorruptState
from neardup.messages.topics import Topics
from neardup.messages.verdicts import read_verdict
from neardup.offline.results.publishing import find_unpublished, set_published, unpublished
from neardup.types import Kind, PageRef, Relation
from tests.offline.results import clustered, overturned, write_results

TOPICS = Topics.under("t")


def said(directory: Path) -> tuple[dict[str, dict[str, Any]], list[Any]]:
    """The clusters by url, and the verdicts."""
    find_unpublished(directory)
    outputs = [output for some in unpublished(directory, TOPICS, "nd1", "json") for output in some]
    clusters = {}
    for output in outputs:
        if output.topic == TOPICS.clusters:
            assert output.key is not None
            assert output.value is not None
            clusters[output.key.decode()] = json.loads(output.value)
    return clusters, [read_verdict(output.value or b"") for output in outputs if output.topic == TOPICS.verdicts]


def test_at_first_every_url_and_every_revision_is_said(tmp_path: Path) -> None:
    write_results(tmp_path, [clustered(0, 0), clustered(1, 0)], [overturned(1, 0)])
    clusters, [verdict] = said(tmp_path)
    assert clusters["http://a.example/1"] == {
        "url": "http://a.example/1",
        "document": "0:1",
        "cluster": "0:0",
        "relation": "near",
        "representative": {"url": "http://a.example/0", "document": "0:0"},
    }
    assert clusters["http://a.example/0"]["relation"] == "first"
    assert (verdict.document, verdict.revision, verdict.verdict) == ("0:1", 2, Kind.DUPLICATE)
    assert verdict.duplicate_of == verdict.first_of_group == PageRef("http://a.example/0", "0:0")
    assert verdict.relation is Relation.NEAR
    assert verdict.found_by == ("offline",)
    assert verdict.resemblance == 0.8
    assert verdict.fetched_at == "2026-01-01T00:00:00Z"


def test_until_it_is_published_it_is_said_again_and_then_no_more(tmp_path: Path) -> None:
    write_results(tmp_path, [clustered(0, 0), clustered(1, 0)], [overturned(1, 0)])
    assert said(tmp_path) == said(tmp_path)
    set_published(tmp_path)
    assert said(tmp_path) == ({}, [])


def test_only_what_changed_is_said_the_next_time(tmp_path: Path) -> None:
    write_results(tmp_path, [clustered(0, 0), clustered(1, 1)], [])
    said(tmp_path)
    set_published(tmp_path)
    write_results(tmp_path, [clustered(0, 0), clustered(1, 0), clustered(2, 2)], [overturned(1, 0)])
    clusters, verdicts = said(tmp_path)
    assert set(clusters) == {"http://a.example/1", "http://a.example/2"}
    assert [verdict.document for verdict in verdicts] == ["0:1"]


def test_a_verdict_taken_back_is_said_with_its_next_revision(tmp_path: Path) -> None:
    write_results(tmp_path, [clustered(0, 0), clustered(1, 0)], [overturned(1, 0)])
    said(tmp_path)
    set_published(tmp_path)
    write_results(tmp_path, [clustered(0, 0), clustered(1, 1)], [overturned(1, None, revision=3)])
    _, [verdict] = said(tmp_path)
    assert (verdict.verdict, verdict.revision, verdict.duplicate_of) == (Kind.UNIQUE, 3, None)


def test_a_url_stands_for_its_last_document_in_the_order_of_all_pages(tmp_path: Path) -> None:
    same = "http://a.example/same"
    rows = [clustered(5, 5, url=same, timestamp=9), clustered(6, 6, url=same, timestamp=3)]
    write_results(tmp_path, rows, [])
    clusters, _ = said(tmp_path)
    assert clusters[same]["document"] == "0:5"


def test_what_another_pass_writes_meanwhile_is_said_the_next_time(tmp_path: Path) -> None:
    write_results(tmp_path, [clustered(0, 0)], [])
    find_unpublished(tmp_path)
    saying = unpublished(tmp_path, TOPICS, "nd1", "json")
    next(saying)
    write_results(tmp_path, [clustered(0, 0), clustered(1, 0)], [overturned(1, 0)])
    assert list(saying) == []
    set_published(tmp_path)
    clusters, [verdict] = said(tmp_path)
    assert set(clusters) == {"http://a.example/1"}
    assert verdict.document == "0:1"


def test_what_was_published_and_is_torn_is_said_again(tmp_path: Path) -> None:
    write_results(tmp_path, [clustered(0, 0)], [])
    said(tmp_path)
    set_published(tmp_path)
    (tmp_path / "published" / "clusters.parquet").write_bytes(b"PAR1")
    assert set(said(tmp_path)[0]) == {"http://a.example/0"}


def test_torn_results_are_an_error(tmp_path: Path) -> None:
    write_results(tmp_path, [clustered(0, 0)], [])
    (tmp_path / "clusters.parquet").write_bytes(b"PAR1")
    with pytest.raises(CorruptState, match="expected results of an offline pass"):
        said(tmp_path)


def test_what_is_to_be_said_and_is_torn_is_an_error(tmp_path: Path) -> None:
    write_results(tmp_path, [clustered(0, 0)], [])
    find_unpublished(tmp_path)
    (tmp_path / "published" / "clusters.unsaid").write_bytes(b"PAR1")
    with pytest.raises(CorruptState, match="expected what is to be said"):
        list(unpublished(tmp_path, TOPICS, "nd1", "json"))


def test_an_empty_pass_says_nothing(tmp_path: Path) -> None:
    write_results(tmp_path, [], [])
    assert said(tmp_path) == ({}, [])
    set_published(tmp_path)
    assert said(tmp_path) == ({}, [])
