"""Tests of canaries on a real broker: their service plants them, and only the operator receives their verdicts."""

import asyncio
import json
import time
from dataclasses import replace

import pytest

from neardup.sample import sample_crawl
from tests.services.test_stream import last_verdicts, send
from tests.services.workers import Deployment

pytestmark = [pytest.mark.kafka, pytest.mark.real_broker]

PAGES = 120
SECONDS = 60.0


async def test_only_the_operator_receives_verdicts_on_canaries(deployment: Deployment) -> None:
    assert deployment.neardup("topics", "create").returncode == 0
    services = ("featurizer", "shard", "aggregator", "canary")
    deployment.settings = replace(deployment.settings, canary_share=0.9)
    for worker in [deployment.start("neardup", "worker", name) for name in services]:
        await asyncio.to_thread(worker.await_ready)
    await send(deployment.settings, [made.page for made in sample_crawl(PAGES, seed=8, mean_bytes=8000)])
    verdicts = await last_verdicts(deployment.settings, PAGES)
    assert len(verdicts) == PAGES
    assert not any("canary" in (verdict.reason or "") for verdict in verdicts)
    deadline = time.monotonic() + SECONDS
    canaries: list[dict[str, object]] = []
    while not canaries and time.monotonic() < deadline:
        done = await asyncio.to_thread(deployment.neardup, "verdicts", "--canaries")
        assert done.returncode == 0, done
        canaries = [json.loads(line) for line in done.stdout.splitlines()]
    assert canaries
    assert all(str(each["reason"]).startswith("canary: ") for each in canaries)
    assert any(each["verdict"] == "duplicate" for each in canaries)
