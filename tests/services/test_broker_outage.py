"""Tests of workers of every service during an outage of the broker: readiness, log lines, and no lost page."""

import asyncio
import json
import math
import signal
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from deploy.kafka import broker as kafka
from neardup.deployment.deployment import SERVICES
from neardup.log import Output
from neardup.log.kafka import KafkaLog
from neardup.sample import sample_crawl
from neardup.settings import Settings
from tests.services.test_stream import check, last_verdicts, send
from tests.services.workers import Deployment, Worker
from tests.support.brokers import VERSION

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.real_broker,
    pytest.mark.skipif(not kafka.available(), reason="needs Java and Maven to start a broker of its own"),
]

OUTAGE_SECONDS = 25.0
NOT_READY_WITHIN_SECONDS = 15.0
READY_WITHIN_SECONDS = 150.0
"""Time after the broker accepts connections again. Usually the next query takes a few seconds. A request that was sent
while the broker was starting may remain unanswered, and then ends with the request timeout of 120 s.
"""
SAMPLE_SECONDS = 0.5
SECONDS_PER_LINE = 2.0
MOST_LINES = 80
"""Maximum number of log lines of an outage with its rebalance, a few per partition."""
PAGES = 400


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[kafka.Cluster]:
    with kafka.Cluster(tmp_path / "kafka", version=VERSION) as started:
        yield started


@pytest.fixture
def settings(cluster: kafka.Cluster, tmp_path: Path) -> Settings:
    return Settings(
        broker=cluster.bootstrap,
        prefix="outage",
        page_partitions=2,
        owners=2,
        verdict_partitions=1,
        session_timeout_seconds=2,
        checkpoint_seconds=0.5,
        corpus=str(tmp_path / "corpus"),
        log_format="json",
    )


@pytest.fixture
def started(settings: Settings, tmp_path: Path) -> Iterator[Deployment]:
    """Provide one ready worker of each service."""
    made = Deployment(settings, tmp_path)
    try:
        created = made.neardup("topics", "create")
        assert created.returncode == 0, created
        for name in SERVICES:
            made.start("neardup", "worker", name)
        for worker in made.workers:
            worker.await_ready(120)
        yield made
    finally:
        for worker in made.workers:
            worker.kill()


class Readiness:
    """The responses of one worker to /readyz over time; only changes are stored."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self.changes: list[tuple[float, bool, str | None]] = []

    def sample(self) -> None:
        assert self._worker.process.poll() is None, f"the worker ended:\n{self._worker.log.read_text()[-3000:]}"
        assert self._worker.get("/healthz")[0] == 200
        at = time.monotonic()
        status, text = self._worker.get("/readyz")
        body = json.loads(text)
        assert (status == 200) == body["ready"]
        if not self.changes or self.changes[-1][1] != body["ready"]:
            self.changes.append((at, body["ready"], body["reason"]))

    @property
    def is_ready(self) -> bool:
        return self.changes[-1][1]

    def first(self, ready: bool, after: float) -> float:
        """Return the seconds from `after` to the first response of this kind, or infinity."""
        return next((at - after for at, is_ready, _ in self.changes if at >= after and is_ready is ready), math.inf)


@asynccontextmanager
async def sampled(workers: list[Worker]) -> AsyncIterator[list[Readiness]]:
    """Sample /readyz of every worker until the block ends. A worker that ends fails the test."""
    found = [Readiness(worker) for worker in workers]
    done = asyncio.Event()

    async def sample() -> None:
        while not done.is_set():
            for each in found:
                await asyncio.to_thread(each.sample)
            await asyncio.sleep(SAMPLE_SECONDS)

    task = asyncio.create_task(sample())
    try:
        yield found
    finally:
        done.set()
        await task


def lines_of(worker: Worker) -> list[str]:
    return worker.log.read_text().splitlines()


async def test_an_outage_shows_in_readyz_and_in_few_lines_and_loses_nothing(
    cluster: kafka.Cluster, started: Deployment, settings: Settings, tmp_path: Path
) -> None:
    pages = [made.page for made in sample_crawl(PAGES, seed=11, mean_bytes=8000)]
    await send(settings, pages[: PAGES // 2])
    before = [len(lines_of(worker)) for worker in started.workers]
    async with sampled(started.workers) as readiness:
        killed = time.monotonic()
        cluster.kill()
        await asyncio.sleep(OUTAGE_SECONDS)
        during = [len(lines_of(worker)) for worker in started.workers]
        await asyncio.to_thread(cluster.start)
        restarted = time.monotonic()
        while time.monotonic() - restarted < READY_WITHIN_SECONDS and not all(each.is_ready for each in readiness):
            await asyncio.sleep(SAMPLE_SECONDS)
    for name, each in zip(SERVICES, readiness, strict=True):
        print(name, [(round(at - killed, 1), ready, reason) for at, ready, reason in each.changes])
        assert each.first(False, killed) < NOT_READY_WITHIN_SECONDS
        assert each.first(True, restarted) < READY_WITHIN_SECONDS
        assert not any(ready for at, ready, _ in each.changes if 1 < at - killed < OUTAGE_SECONDS)
        reasons = [reason or "" for _, ready, reason in each.changes if not ready]
        assert reasons[0].startswith("no contact with the broker for 1"), reasons
    for name, worker, first, last in zip(SERVICES, started.workers, before, during, strict=True):
        written = lines_of(worker)[first:]
        print(name, last - first, "lines during the outage,", len(written), "until the worker was ready")
        assert last - first <= OUTAGE_SECONDS / SECONDS_PER_LINE, "\n".join(written[:100])
        assert len(written) <= MOST_LINES, "\n".join(written)
        messages = [json.loads(line)["message"] for line in written]
        assert sum("no contact with the broker for" in message for message in messages) >= 2
        assert sum("contact with the broker is restored after" in message for message in messages) == 1
    await send(settings, pages[PAGES // 2 :], PAGES // 2)
    check(settings, await last_verdicts(settings, PAGES, 90), pages, tmp_path / "embedded")


async def test_a_broker_that_accepts_connections_but_does_not_respond_is_an_outage(
    cluster: kafka.Cluster, started: Deployment
) -> None:
    """The requests of the client wait for minutes, but readiness must not."""
    process = cluster.nodes[0].process
    assert process is not None
    async with sampled(started.workers) as readiness:
        stopped = time.monotonic()
        process.send_signal(signal.SIGSTOP)
        try:
            await asyncio.sleep(NOT_READY_WITHIN_SECONDS)
        finally:
            process.send_signal(signal.SIGCONT)
        continued = time.monotonic()
        while time.monotonic() - continued < READY_WITHIN_SECONDS and not all(each.is_ready for each in readiness):
            await asyncio.sleep(SAMPLE_SECONDS)
    for each in readiness:
        assert each.first(False, stopped) < NOT_READY_WITHIN_SECONDS
        assert each.first(True, continued) < READY_WITHIN_SECONDS


async def test_the_first_output_to_a_topic_waits_for_the_end_of_an_outage(
    cluster: kafka.Cluster, settings: Settings, tmp_path: Path
) -> None:
    """A topic that the client has no metadata of must not be taken for a missing one."""
    async with KafkaLog(settings) as log:
        # The client has fetched its metadata before the topics exist.
        created = await asyncio.to_thread(Deployment(settings, tmp_path).neardup, "topics", "create")
        assert created.returncode == 0, created
        cluster.kill()
        sending = asyncio.create_task(log.send([Output("outage.documents", None, b"key", b"value")]))
        await asyncio.sleep(10)
        assert not sending.done(), sending
        await asyncio.to_thread(cluster.start)
        await asyncio.wait_for(sending, 30)
