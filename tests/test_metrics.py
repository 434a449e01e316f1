"""Tests of metrics: they count correctly, exist from the start where alerts need them, and end with their subject."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client import REGISTRY

from neardup.deployment.deployment import SERVICES, make_runner
from neardup.errors import record_reasons
from neardup.log.memory import MemoryLog
from neardup.settings import Settings
from tests.support.documents import page, text_of
from tests.support.wired import Wired

SETTINGS = Settings(prefix="t", owners=1, tables=4, bands="3x4")


def value(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0


@pytest.fixture
def stream(tmp_path: Path) -> Iterator[Wired]:
    wired = Wired(SETTINGS, tmp_path)
    yield wired
    wired.close()


def test_bytes_of_pages_and_of_duplicates_are_counted_once(stream: Wired) -> None:
    pages, duplicates = value("neardup_page_bytes_total"), value("neardup_duplicate_bytes_total")
    first = page(0, text_of(1))
    stream.take([first, page(1, text_of(1)), page(2, text_of(2))])
    assert value("neardup_page_bytes_total") > pages
    saved = value("neardup_duplicate_bytes_total") - duplicates
    assert 0 < saved < value("neardup_page_bytes_total") - pages


def test_every_first_verdict_has_a_latency(stream: Wired) -> None:
    before = value("neardup_page_to_verdict_seconds_count")
    stream.take([page(0, text_of(1)), page(1, text_of(2)), page(2, ["short"])])
    assert value("neardup_page_to_verdict_seconds_count") == before + 3


def test_candidates_are_counted(stream: Wired) -> None:
    before = value("neardup_candidates_total")
    stream.take([page(0, text_of(1)), page(1, [*text_of(1)[:-2], "something", "else"])])
    assert value("neardup_candidates_total") == before + 1


def test_gauges_of_a_partition_end_with_its_stage(tmp_path: Path) -> None:
    stream = Wired(SETTINGS, tmp_path)
    stream.take([page(0, text_of(1)), page(1, text_of(1)), page(2, text_of(2))])
    assert value("neardup_directory_documents", partition="0") == 3
    assert value("neardup_slice_keys", partition="0", table="simhash") == 2
    names = ("slice_bytes", "slice_runs", "directory_documents", "pending_documents", "pending_batches")
    assert all(REGISTRY.get_sample_value(f"neardup_{name}", {"partition": "0"}) is not None for name in names)
    stream.close()
    assert [REGISTRY.get_sample_value(f"neardup_{name}", {"partition": "0"}) for name in names] == [None] * len(names)
    assert REGISTRY.get_sample_value("neardup_slice_keys", {"partition": "0", "table": "simhash"}) is None


def test_gauges_of_a_partition_without_traffic_exist_after_a_restart(tmp_path: Path) -> None:
    before = Wired(SETTINGS, tmp_path)
    before.take([page(0, text_of(1)), page(1, text_of(1)), page(2, text_of(2))])
    names = ("slice_bytes", "slice_runs", "directory_documents", "pending_documents", "pending_batches",
             "oldest_pending_seconds")  # fmt: skip
    labels = [(f"neardup_{name}", {"partition": "0"}) for name in names]
    labels.append(("neardup_slice_keys", {"partition": "0", "table": "simhash"}))
    expected = [REGISTRY.get_sample_value(*each) for each in labels]
    before.save()
    before.close()
    after = Wired(SETTINGS, tmp_path)
    assert [REGISTRY.get_sample_value(*each) for each in labels] == expected
    assert value("neardup_directory_documents", partition="0") == 3
    assert value("neardup_slice_keys", partition="0", table="simhash") == 2
    assert value("neardup_owner_cache_bytes", partition="0") > 0
    after.close()
    assert [REGISTRY.get_sample_value(*each) for each in labels] == [None] * len(labels)


@pytest.mark.parametrize("service", SERVICES)
async def test_counters_that_alerts_use_start_at_zero(service: str, tmp_path: Path) -> None:
    make_runner(service, Settings(state=tmp_path), MemoryLog())
    for reason in record_reasons():
        assert REGISTRY.get_sample_value("neardup_dead_letters_total", {"stage": service, "reason": reason}) is not None
    assert {"invalid-page", "wrong-plan", "too-large"} <= set(record_reasons())


async def test_a_worker_reports_its_versions(tmp_path: Path) -> None:
    make_runner("shard", Settings(state=tmp_path), MemoryLog())
    (family,) = [each for each in REGISTRY.collect() if each.name == "neardup_build_info"]
    assert all(sample.value == 1 and all(sample.labels.values()) for sample in family.samples)
