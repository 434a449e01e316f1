"""Tests of the stream on a real broker with two processes per service: the verdicts are the same as in one process."""

import asyncio
import signal
import time
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaConnectionError

from neardup.embedded.deduplicator import Deduplicator
from neardup.log.kafka import KafkaLog
from neardup.messages.pages import write_page
from neardup.messages.topics import Topics
from neardup.messages.verdicts import read_verdict
from neardup.sample import sample_crawl
from neardup.settings import Settings
from neardup.types import Kind, Page, Verdict
from tests.log.test_contract import Recorder, join
from tests.services.workers import Deployment

pytestmark = [pytest.mark.kafka, pytest.mark.real_broker]

TWO_OF_EACH = ("featurizer", "featurizer", "shard", "shard", "aggregator", "aggregator")
PAGES = 600
FIRST_MS = int(time.time() * 1000) - 3_600_000
"""Timestamp of the first page, recent enough that the broker does not remove it."""


async def send(settings: Settings, pages: list[Page], first: int = 0) -> None:
    """Send pages with rising timestamps to the partitions in turn, so that their order is that of the list."""
    producer = AIOKafkaProducer(bootstrap_servers=settings.broker)
    try:
        await producer.start()
    except KafkaConnectionError:
        await producer.stop()
        raise
    topic = Topics.under(settings.prefix).pages
    for number, page in enumerate(pages, first):
        await producer.send(
            topic,
            write_page(page),
            partition=number % settings.page_partitions,
            timestamp_ms=FIRST_MS + number,
        )
    await producer.stop()


async def last_verdicts(settings: Settings, total: int, seconds: float = 60) -> list[Verdict]:
    """Return the last verdict on each document, in the order in which the pages were sent."""
    last: dict[str, Verdict] = {}
    log = KafkaLog(settings)
    await log.start()
    consumer, recorder = await join(log, Topics.under(settings.prefix).verdicts, "check", Recorder())
    quiet = 0
    async with asyncio.timeout(seconds):
        # All pages have a verdict, and no more arrive for a while: revisions may follow.
        while len(last) < total or quiet < 5:
            found = await consumer.poll(recorder.mine, timeout=0.2, max_records=5000)
            quiet = 0 if found else quiet + 1
            for records in found.values():
                for record in records:
                    verdict = read_verdict(record.value or b"")
                    if verdict.document not in last or last[verdict.document].revision <= verdict.revision:
                        last[verdict.document] = verdict
    await consumer.close()
    await log.stop()
    return sorted(last.values(), key=lambda verdict: number_of(verdict.document, settings))


def number_of(document: str, settings: Settings) -> int:
    partition, offset = map(int, document.split(":"))
    return offset * settings.page_partitions + partition


def check(settings: Settings, verdicts: list[Verdict], pages: list[Page], state: Path) -> None:
    """Check that each verdict is the same as in one process."""
    with Deduplicator(state, settings) as known:
        expected = known.add_all(pages)
    assert [verdict.url for verdict in verdicts] == [page.url for page in pages]
    assert [verdict.verdict for verdict in verdicts] == [verdict.verdict for verdict in expected]
    for number, verdict in enumerate(verdicts):
        if verdict.duplicate_of is not None:
            assert number_of(verdict.duplicate_of.document, settings) < number
    assert sum(verdict.verdict is Kind.DUPLICATE for verdict in verdicts) > len(pages) / 4


async def test_two_workers_per_service_give_the_verdicts_of_one_process(deployment: Deployment, tmp_path: Path) -> None:
    settings = deployment.settings
    assert deployment.neardup("topics", "create").returncode == 0
    for worker in [deployment.start("neardup", "worker", name) for name in TWO_OF_EACH]:
        await asyncio.to_thread(worker.await_ready)
    pages = [made.page for made in sample_crawl(PAGES, seed=5, mean_bytes=8000)]
    await send(settings, pages)
    check(settings, await last_verdicts(settings, PAGES), pages, tmp_path / "embedded")
    for worker in deployment.workers:
        assert worker.terminate() == 0, worker.log.read_text()


async def test_killed_workers_lose_nothing(deployment: Deployment, tmp_path: Path) -> None:
    """One worker of each service gets kill -9. The other one takes over without the state of these partitions."""
    settings = deployment.settings
    assert deployment.neardup("topics", "create").returncode == 0
    workers = [deployment.start("neardup", "worker", name) for name in TWO_OF_EACH]
    for worker in workers:
        await asyncio.to_thread(worker.await_ready)
    pages = [made.page for made in sample_crawl(PAGES, seed=6, mean_bytes=8000)]
    for start in range(0, PAGES, 60):
        await send(settings, pages[start : start + 60], start)
        if start in (120, 240, 360):
            workers[start // 60 - 2].process.send_signal(signal.SIGKILL)
        await asyncio.sleep(0.2)
    check(settings, await last_verdicts(settings, PAGES, 90), pages, tmp_path / "embedded")


async def test_pages_are_no_longer_compared_with_a_forgotten_url(deployment: Deployment) -> None:
    settings = deployment.settings
    assert deployment.neardup("topics", "create").returncode == 0
    for worker in [deployment.start("neardup", "worker", name) for name in ("featurizer", "shard", "aggregator")]:
        await asyncio.to_thread(worker.await_ready)
    [page] = [made.page for made in sample_crawl(1, seed=7, mean_bytes=8000)]
    await send(settings, [page, page])
    assert [verdict.verdict for verdict in await last_verdicts(settings, 2)] == [Kind.UNIQUE, Kind.DUPLICATE]
    counted = deployment.neardup("forget", page.url)
    assert counted.returncode == 0, counted
    await send(settings, [page], first=2)
    assert [verdict.verdict for verdict in await last_verdicts(settings, 3)][2] is Kind.UNIQUE
    counted = deployment.neardup("verdicts", "--summary")
    assert "3 documents: 2 unique, 1 duplicate, 0 skipped" in counted.stdout, counted
