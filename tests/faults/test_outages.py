"""Things that end or stand still in mid-stream: afterwards every verdict is as if nothing had.

In `make test` some happen once; `make faults` does all of them over and over (NEARDUP_FAULT_ROUNDS).
"""

import asyncio
import os
import random
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest
from aiokafka.errors import KafkaConnectionError

import broker as kafka
from neardup.sample import sample_crawl
from neardup.settings import Settings
from neardup.types import Page
from tests.brokers import VERSION
from tests.services.test_stream import TWO_OF_EACH, check, last_verdicts, send
from tests.services.workers import Deployment, Worker

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.real_broker,
    pytest.mark.faults,
    pytest.mark.skipif(not kafka.available(), reason="needs Java and Maven, to start brokers of its own"),
]

ROUNDS = int(os.environ.get("NEARDUP_FAULT_ROUNDS", "1"))
PAGES = 240 * ROUNDS
STEP = 40
SESSION_SECONDS = 2.0


class Outage:
    """A cluster, two workers of each service, and what can be done to them."""

    def __init__(self, cluster: kafka.Cluster, deployment: Deployment) -> None:
        self.cluster, self.deployment = cluster, deployment
        self.random = random.Random(1)
        self.services = list(TWO_OF_EACH)

    async def kill_a_worker(self) -> None:
        """kill -9, and another one in its place."""
        number = self.random.randrange(len(self.services))
        worker = self.deployment.workers[number]
        worker.process.kill()
        worker.process.wait()
        await self._replace(number)

    async def pause_a_worker(self) -> None:
        """Long enough for others to take over; then it goes on where it was."""
        worker = self.deployment.workers[self.random.randrange(len(self.services))]
        worker.process.send_signal(signal.SIGSTOP)
        await asyncio.sleep(SESSION_SECONDS * 2.5)
        worker.process.send_signal(signal.SIGCONT)

    async def restart_the_broker(self) -> None:
        """In order."""
        await asyncio.to_thread(self.cluster.restart, self.random.choice(self.cluster.nodes))

    async def kill_the_broker(self) -> None:
        """kill -9."""
        node = self.random.choice(self.cluster.nodes)
        self.cluster.kill(node)
        await asyncio.sleep(1)
        await asyncio.to_thread(self.cluster.start, node)

    async def a_bad_day(self) -> None:
        """A worker stands still, then the broker dies."""
        await self.pause_a_worker()
        await self.kill_the_broker()

    async def revive(self) -> None:
        """What an orchestrator does: a worker that ended is started again."""
        for number, worker in enumerate(self.deployment.workers[: len(self.services)]):
            if worker.process.poll() is not None:
                await self._replace(number)

    async def _replace(self, number: int) -> None:
        made = self.deployment.start("neardup", "worker", self.services[number])
        self.deployment.workers[number], self.deployment.workers[-1] = made, self.deployment.workers[number]
        await asyncio.to_thread(made.await_ready)


@pytest.fixture
async def outage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Outage]:
    nodes = request.param
    with kafka.Cluster(tmp_path / "kafka", version=VERSION, nodes=nodes) as cluster:
        settings = Settings(
            broker=cluster.bootstrap,
            prefix="outage",
            replication=nodes,
            session_timeout_seconds=SESSION_SECONDS,
            checkpoint_seconds=0.3,
            verdict_partitions=1,
        )
        deployment = Deployment(settings, tmp_path)
        try:
            assert deployment.neardup("topics", "create").returncode == 0
            for service in TWO_OF_EACH:
                deployment.start("neardup", "worker", service)
            for worker in deployment.workers:
                await asyncio.to_thread(worker.await_ready, 90)
            yield Outage(cluster, deployment)
        finally:
            for worker in deployment.workers:
                _end(worker)


# Killed workers are in `tests/services/test_stream.py`, too.
IN_SHORT = [(1, Outage.a_bad_day)]
AT_LENGTH = [
    (1, Outage.pause_a_worker),
    (1, Outage.kill_a_worker),
    (1, Outage.kill_the_broker),
    (1, Outage.restart_the_broker),
    (3, Outage.kill_the_broker),
]


@pytest.mark.parametrize(
    ("outage", "fault"),
    IN_SHORT if ROUNDS == 1 else AT_LENGTH,
    indirect=["outage"],
    ids=lambda value: value.__name__.replace("_", " ") if callable(value) else f"{value} nodes",
)
async def test_the_verdicts_are_those_of_an_undisturbed_run(
    outage: Outage, fault: Callable[[Outage], Awaitable[None]], tmp_path: Path
) -> None:
    settings = outage.deployment.settings
    pages = [made.page for made in sample_crawl(PAGES, seed=21, mean_bytes=8000)]
    feeding = asyncio.create_task(_feed(settings, pages))
    for _ in range(ROUNDS):
        await asyncio.sleep(0.5)
        await fault(outage)
        await outage.revive()
    await feeding
    await outage.revive()
    started = time.monotonic()
    verdicts = await last_verdicts(settings, PAGES, 120 + 30 * ROUNDS)
    print(f"all verdicts {time.monotonic() - started:.1f} s after the last page")
    check(replace(settings, state=tmp_path / "other"), verdicts, pages, tmp_path / "embedded")


async def _feed(settings: Settings, pages: list[Page]) -> None:
    for start in range(0, len(pages), STEP):
        while True:
            try:
                await send(settings, pages[start : start + STEP], start)
                break
            except KafkaConnectionError:
                # No broker to begin with: nothing was sent yet. One that goes away later is the client's business.
                await asyncio.sleep(0.5)
        await asyncio.sleep(0.3)


def _end(worker: Worker) -> None:
    if worker.process.poll() is None:
        worker.process.send_signal(signal.SIGCONT)
        worker.process.kill()
    worker.process.wait()
