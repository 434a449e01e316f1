"""Tests of the judgement of the soak program. The program itself runs for an hour."""

from collections.abc import Collection
from pathlib import Path
from typing import Any

from neardup.settings import Settings
from tests.faults.soak import SERVICES, judged, stop
from tests.faults.vitals import bounds
from tests.services.workers import Deployment


def seen(
    minutes: int = 60,
    *,
    leak_mb: float = 0.0,
    filling_mb: float = 0.0,
    slower_ms: float = 0.0,
    passes: Collection[int] = (),
    pass_mb: float = 0.0,
) -> dict[str, Any]:
    """Return the measurements of a run in which the shard leaks, all caches fill, and verdicts become slower.

    In the minutes of `passes` the recluster worker uses `pass_mb` more.
    """
    at = range(minutes)
    return {
        "minutes": minutes,
        "bounds_mb": bounds(Settings(), 1_000_000 if passes else 0),
        "services": {
            name: {
                "seconds": [60.0 * minute for minute in at],
                "memory_mb": [
                    300
                    + filling_mb * minute
                    + (leak_mb * minute if name == "shard" else 0)
                    + (pass_mb if name == "recluster" and minute in passes else 0)
                    for minute in at
                ],
                "passing": [name == "recluster" and minute in passes for minute in at],
                "caches_mb": [filling_mb * minute for minute in at],
            }
            for name in SERVICES
        },
        "late_to_stop": [],
        "latency_ms": [{"minute": each, "p50": 100.0, "p99": 300.0 + slower_ms * each} for each in at],
    }


def broken(figures: dict[str, Any]) -> list[str]:
    return [each["what"] for each in judged(figures) if each["holds"] is False]


def test_an_even_run_breaks_no_bound() -> None:
    assert broken(seen()) == []


def test_growing_memory_is_reported_long_before_its_bound() -> None:
    assert broken(seen(leak_mb=2)) == ["shard: growth of memory without caches, MB/h"]
    assert "shard: peak memory, MB" in broken(seen(leak_mb=10))


def test_filling_caches_are_not_growth_but_count_for_the_bound() -> None:
    assert broken(seen(filling_mb=4)) == []
    assert broken(seen(filling_mb=4, leak_mb=2)) == ["shard: growth of memory without caches, MB/h"]
    assert "aggregator: peak memory, MB" in broken(seen(filling_mb=20))


def test_the_bound_of_an_aggregator_follows_from_its_owners() -> None:
    few, many = (bounds(Settings(owners=owners)) for owners in (2, 4))
    assert many["aggregator"] - few["aggregator"] == few["aggregator"] - few["shard"]
    assert many["shard"] == few["shard"]


def test_a_pass_at_the_end_is_not_growth_but_counts_for_the_bound() -> None:
    late = range(50, 60)
    assert broken(seen(passes=late, pass_mb=1000)) == []
    assert "recluster: peak memory, MB" in broken(seen(passes=late, pass_mb=3000))


def test_growth_is_not_judged_under_an_endless_pass() -> None:
    results = {each["what"]: each["holds"] for each in judged(seen(passes=range(18, 60), pass_mb=1000))}
    assert results["recluster: growth of memory without caches, MB/h"] is None
    assert results["shard: growth of memory without caches, MB/h"] is True


def test_the_bound_of_a_pass_is_its_setting_and_an_amount_per_document() -> None:
    few, many = (bounds(Settings(offline_memory_mb=500), clustered) for clustered in (1, 2_000_000))
    more_to_sort = bounds(Settings(offline_memory_mb=800), 1)
    assert few["recluster"] > bounds(Settings())["recluster"] + 500
    assert more_to_sort["recluster"] - few["recluster"] == 300
    assert 500 < many["recluster"] - few["recluster"] < 1000
    assert many["aggregator"] == few["aggregator"]


def test_growing_latency_is_reported() -> None:
    assert broken(seen(slower_ms=10)) == ["p99, ms, at the end"]


def test_a_short_run_does_not_judge_growth() -> None:
    assert broken(seen(10, leak_mb=2)) == []


def test_negative_latency_breaks_the_bound() -> None:
    assert broken(seen(slower_ms=-100)) == ["p99, ms, at the end"]


def test_a_worker_that_does_not_stop_is_killed_and_reported(tmp_path: Path) -> None:
    deployment = Deployment(Settings(), tmp_path)
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); open('deaf', 'w'); time.sleep(600)"
    workers = {
        "deaf": deployment.start("python", "-c", deaf),
        "prompt": deployment.start("python", "-c", "import time; time.sleep(600)"),
    }
    while not (tmp_path / "deaf").exists():
        assert workers["deaf"].process.poll() is None
    late = stop(workers, grace=1)
    assert late == ["deaf"]
    assert all(worker.process.returncode is not None for worker in workers.values())
    assert broken(seen() | {"late_to_stop": late}) == ["workers that did not stop in time"]
