"""Tests of `neardup produce --wait`: verdicts on the pages of one producer, and a clear error if none arrive."""

import json
from pathlib import Path

import pytest

from tests.services.workers import Deployment
from tests.support.documents import text_of

pytestmark = [pytest.mark.kafka, pytest.mark.real_broker]


def pages(path: Path, *numbers: int) -> str:
    """Write a file of pages with different texts."""
    lines = [json.dumps({"url": f"http://a.example/{n}", "text": " ".join(text_of(n))}) for n in numbers]
    path.write_text("\n".join(lines))
    return str(path)


def test_the_counts_cover_only_the_pages_that_were_sent(deployment: Deployment, tmp_path: Path) -> None:
    """Other pages with the same urls do not count, neither those of an earlier crawl nor canaries."""
    assert deployment.neardup("topics", "create").returncode == 0
    for worker in [deployment.start("neardup", "worker", name) for name in ("featurizer", "shard", "aggregator")]:
        worker.await_ready()
    first = deployment.neardup("produce", pages(tmp_path / "first.jsonl", 1, 2, 3), "--wait")
    assert first.returncode == 0, first
    assert first.stdout.startswith("3 documents: 3 unique, 0 duplicate, 0 skipped")
    second = deployment.neardup("produce", pages(tmp_path / "second.jsonl", 1, 2, 3, 4), "--wait")
    assert second.stdout.startswith("4 documents: 1 unique, 3 duplicate, 0 skipped"), second
    assert "4 pages sent" in second.stderr
    everything = deployment.neardup("verdicts", "--summary")
    assert everything.stdout.startswith("7 documents: 4 unique, 3 duplicate")


def test_without_workers_it_ends_with_an_error(deployment: Deployment, tmp_path: Path) -> None:
    assert deployment.neardup("topics", "create").returncode == 0
    done = deployment.neardup("produce", pages(tmp_path / "pages.jsonl", 1, 2), "--wait", "--timeout", "1")
    assert done.returncode == 1
    assert "expected verdicts on 2 pages, got 0 and none for 1 s" in done.stderr
    assert "Traceback" not in done.stderr
