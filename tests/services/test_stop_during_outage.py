"""Workers that are stopped while their broker is dead or frozen: they end in time, and no page is lost."""

import asyncio
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.kafka import broker as kafka
from neardup.deployment.deployment import SERVICES
from neardup.sample import sample_crawl
from neardup.settings import Settings
from tests.services.test_stream import check, last_verdicts, send
from tests.services.workers import Deployment, Worker
from tests.support.brokers import VERSION

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.real_broker,
    pytest.mark.skipif(not kafka.available(), reason="needs Java and Maven, to start a broker of its own"),
]

STOP_SECONDS = 4.0
END_SECONDS = STOP_SECONDS + 12.0
"""Leaving the group, disconnecting and the end of the process take seconds more, all workers at once on two cores."""
OUTAGE_SECONDS = 13.0
"""Long enough to be reported as an outage, shorter than a request."""
PAGES = 600


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[kafka.Cluster]:
    with kafka.Cluster(tmp_path / "kafka", version=VERSION) as started:
        yield started


@pytest.fixture
def settings(cluster: kafka.Cluster, tmp_path: Path) -> Settings:
    return Settings(
        broker=cluster.bootstrap,
        prefix="stop",
        page_partitions=2,
        owners=2,
        verdict_partitions=1,
        session_timeout_seconds=2,
        checkpoint_seconds=0.5,
        stop_seconds=STOP_SECONDS,
        corpus=str(tmp_path / "corpus"),
    )


@pytest.fixture
def deployment(settings: Settings, tmp_path: Path) -> Iterator[Deployment]:
    made = Deployment(settings, tmp_path)
    try:
        created = made.neardup("topics", "create")
        assert created.returncode == 0, created
        yield made
    finally:
        for worker in made.workers:
            worker.kill()


def await_end(workers: list[Worker], seconds: float) -> None:
    """Wait until all workers ended with exit code 0."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and any(worker.process.poll() is None for worker in workers):
        time.sleep(0.1)
    for worker in workers:
        assert worker.process.poll() == 0, f"{worker.process.poll()}:\n{worker.log.read_text()[-3000:]}"


@pytest.mark.parametrize("outage", ["killed", "frozen"])
async def test_workers_end_in_time_and_lose_nothing(
    outage: str, cluster: kafka.Cluster, deployment: Deployment, settings: Settings, tmp_path: Path
) -> None:
    workers = [deployment.start("neardup", "worker", name) for name in SERVICES]
    for worker in workers:
        await asyncio.to_thread(worker.await_ready, 120)
    pages = [made.page for made in sample_crawl(PAGES, seed=13, mean_bytes=8000)]
    await send(settings, pages)
    process = cluster.nodes[0].process
    assert process is not None
    if outage == "killed":
        cluster.kill()
    else:
        process.send_signal(signal.SIGSTOP)
    try:
        await asyncio.sleep(OUTAGE_SECONDS)
        # An impatient Ctrl-C: the second must neither end the worker before it has saved nor delay its end.
        for worker in workers:
            worker.process.send_signal(signal.SIGINT)
        await asyncio.sleep(0.5)
        for worker in workers:
            worker.process.send_signal(signal.SIGINT)
        await asyncio.to_thread(await_end, workers, END_SECONDS)
    finally:
        if outage == "frozen":
            process.send_signal(signal.SIGCONT)
    for worker in workers:
        text = worker.log.read_text()
        assert text.count("stopped without the broker, whose last answer was") == 1, text[-3000:]
        assert "Traceback" not in text, text[-3000:]
    if outage == "killed":
        await asyncio.to_thread(cluster.start)
    for worker in workers:
        worker.start()
    check(settings, await last_verdicts(settings, PAGES, 120), pages, tmp_path / "embedded")


async def test_a_worker_that_waits_for_a_frozen_broker_at_its_start_ends_in_time(
    cluster: kafka.Cluster, deployment: Deployment
) -> None:
    process = cluster.nodes[0].process
    assert process is not None
    process.send_signal(signal.SIGSTOP)
    try:
        worker = deployment.start("neardup", "worker", "featurizer")
        deadline = time.monotonic() + 120
        while "compiled functions" not in worker.log.read_text() and time.monotonic() < deadline:
            await asyncio.sleep(0.1)
        await asyncio.sleep(2)
        worker.process.send_signal(signal.SIGTERM)
        await asyncio.to_thread(await_end, [worker], END_SECONDS)
    finally:
        process.send_signal(signal.SIGCONT)
