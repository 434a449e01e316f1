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


def find(directory: Path) -> tuple[dict[str, dict[str, Any]], list[Any]]:
    """Return the unpublished clusters by url, and the unpublished verdicts."""
    find_unpublished(directory)
    outputs = [output for some in unpublished(directory, TOPICS, "nd1", "json") for output in some]
    clusters = {}
    for output in outputs:
        if output.topic == TOPICS.clusters:
            assert output.key is not None
            assert output.value is not None
            clusters[output.key.decode()] = json.loads(output.value)
    return clusters, [read_verdict(output.value or b"") for output in outputs if output.topic == TOPICS.verdicts]


def test_at_first_every_url_and_every_revision_is_published(tmp_path: Path) -> None:
    write_results(tmp_path, [clustered(0, 0), clustered(1, 0)], [overturned(1, 0)])
    clusters, [verdict] = find(tmp_path)
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


def test_outputs_are_repeated_until_they_are_published(tmp_path: Path) -> None:
    write_results(tmp_path, [clustered(0, 0), clustered(1, 0)], [overturned(1, 0)])
    assert find(tmp_path) == find(tmp_path)
    set_published(tmp_path)
    assert find(tmp_path) == ({}, [])


def test_only_changes_are_published_the_next_time(tmp_path: Path) -> None:
    write_results(tmp_path, [clustered(0, 0), clustered(1, 1)], [])
    find(tmp_path)
    set_published(tmp_path)
    write_results(tmp_path, [clustered(0, 0), clustered(1, 0), clustered(2, 2)], [overturned(1, 0)])
    clusters, verdicts = find(tmp_path)
    assert set(clusters) == {"http://a.example/1", "http://a.example/2"}
    assert [verdict.document for verdict in verdicts] == ["0:1"]


def test_a_retracted_verdict_is_published_with_its_next_revision(tmp_path: Path) -> None:
    write_results(tmp_path, [clustered(0, 0), clustered(1, 0)], [overturned(1, 0)])
    find(tmp_path)
    set_published(tmp_path)
    write_results(tmp_path, [clustered(0, 0), clustered(1, 1)], [overturned(1, None, revision=3)])
    _, [verdict] = find(tmp_path)
    assert (verdict.verdict, verdict.revision, verdict.duplicate_of) == (Kind.UNIQUE, 3, None)


def test_the_entry_of_a_url_is_its_last_document_in_the_order_of_all_pages(tmp_path: Path) -> None:
    same = "http://a.example/same"
    rows = [clustered(5, 5, url=same, timestamp=9), clustered(6, 6, url=same, timestamp=3)]
    write_results(tmp_path, rows, [])
    clusters, _ = find(tmp_path)
    assert clusters[same]["document"] == "0:5"


def test_results_written_during_publishing_are_published_the_next_time(tmp_path: Path) -> None:
    write_results(tmp_path, [clustered(0, 0)], [])
    find_unpublished(tmp_path)
    outputs = unpublished(tmp_path, TOPICS, "nd1", "json")
    next(outputs)
    write_results(tmp_path, [clustered(0, 0), clustered(1, 0)], [overturned(1, 0)])
    assert list(outputs) == []
    set_published(tmp_path)
    clusters, [verdict] = find(tmp_path)
    assert set(clusters) == {"http://a.example/1"}
    assert verdict.document == "0:1"


def test_a_damaged_record_of_published_results_causes_a_repetition(tmp_path: Path) -> None:
    write_results(tmp_path, [clustered(0, 0)], [])
    find(tmp_path)
    set_published(tmp_path)
    (tmp_path / "published" / "clusters.parquet").write_bytes(b"PAR1")
    assert set(find(tmp_path)[0]) == {"http://a.example/0"}


def test_damaged_results_are_an_error(tmp_path: Path) -> None:
    write_results(tmp_path, [clustered(0, 0)], [])
    (tmp_path / "clusters.parquet").write_bytes(b"PAR1")
    with pytest.raises(CorruptState, match="expected results of an offline pass"):
        find(tmp_path)


def test_damaged_unpublished_results_are_an_error(tmp_path: Path) -> None:
    write_results(tmp_path, [clustered(0, 0)], [])
    find_unpublished(tmp_path)
    (tmp_path / "published" / "clusters.unsaid").write_bytes(b"PAR1")
    with pytest.raises(CorruptState, match="expected messages to publish"):
        list(unpublished(tmp_path, TOPICS, "nd1", "json"))


def test_an_empty_pass_publishes_nothing(tmp_path: Path) -> None:
    write_results(tmp_path, [], [])
    assert find(tmp_path) == ({}, [])
    set_published(tmp_path)
    assert find(tmp_path) == ({}, [])
