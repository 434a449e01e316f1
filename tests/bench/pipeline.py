"""Benchmark of the whole stream against its most expensive part: its throughput relative to featurizing on one core.

On Kafka, one process per service and a broker run on this machine. First they process a backlog of pages at full speed.
Then pages arrive at a quarter of that rate, and the time from page to verdict is measured. Embedded, the same pages go
through one process.
"""

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from neardup.deployment.topics import topic_specs
from neardup.embedded.embedded import Embedded
from neardup.log import PlainRecord
from neardup.log.kafka import KafkaLog
from neardup.messages.pages import write_page
from neardup.messages.topics import Topics
from neardup.messages.verdicts import read_verdict
from neardup.runtime.process_tuning import tune_process
from neardup.sample import sample_crawl
from neardup.settings import Settings
from neardup.signatures.signature import SignatureOptions, Signatures
from neardup.stream.featurizer.page_pool import PagePool
from neardup.types import Page, Verdict
from tests.bench.result import Result
from tests.support.brokers import find_broker
from tests.support.process_tree import cpu_seconds

SERVICES = ("featurizer", "shard", "aggregator")
WARM = 1000
MEAN_BYTES = 20_000
LINGER_MS = 5
"""Linger of the crawler's producer at moderate load, the default of Kafka's Java client."""
TICK_SECONDS = 0.005
QUIET_SECONDS = 0.5
QUIET_SHARE = 0.1
"""Share of a core that idle services use."""
BATCH_BYTES = 1 << 20


def run(*, full: bool) -> list[Result]:
    """Measure ratios, latencies, CPU time by service, and messages and bytes per page."""
    count, seconds = (50_000, 60) if full else (20_000, 20)
    pages = [made.page for made in sample_crawl(count, seed=3, mean_bytes=MEAN_BYTES)]
    about = f"{count:,} pages of {sum(len(page.content) for page in pages) // count:,} bytes"
    settings = Settings()
    tune_process()
    alone = _featurize_alone(settings, pages[: count // 4])
    cores = os.cpu_count() or 1
    at_most = _featurize_in_processes(settings, pages, cores)
    embedded = asyncio.run(_embedded(settings, pages))
    with tempfile.TemporaryDirectory() as directory, find_broker(Path(directory) / "kafka") as broker:
        chosen = replace(
            settings, broker=broker.bootstrap, prefix=f"bench-{uuid.uuid4().hex[:8]}", session_timeout_seconds=300
        )
        kafka = Kafka(chosen, Path(directory))
        results = asyncio.run(kafka.measure(pages, seconds))
    rate, p50, p99, load, shares, messages, sizes = results
    against = f"featurizing alone on one core, {alone:,.0f} pages/s; {about}"
    wait = f"{load:,.0f} pages/s, a quarter of the highest rate"
    return [
        Result("kafka_vs_featurize", rate / alone, "ratio", against, goal=0.6),
        Result("embedded_vs_featurize", embedded / alone / cores, "ratio per core", against, goal=0.8),
        Result("featurizing_vs_featurize", at_most / alone / cores, "ratio per core", against),
        Result("latency_p50_ms", p50, "ms", wait),
        Result("latency_p99_ms", p99, "ms", wait, goal=250, smaller_is_better=True),
        Result("kafka_pages_per_s", rate, "pages/s", about),
        Result("embedded_pages_per_s", embedded, "pages/s", about),
        Result("featurize_pages_per_s", alone, "pages/s", "itself"),
        *(Result(f"cpu_{name}_us", share, "us per page", about) for name, share in shares.items()),
        *(Result(f"messages_{name}", number, "per page", about) for name, number in messages.items()),
        *(Result(f"bytes_{name}", number, "per page", about) for name, number in sizes.items()),
    ]


def _featurize_alone(settings: Settings, pages: list[Page]) -> float:
    """Return the pages per second of the featurizer's work on pages alone, the best of three rounds."""
    signatures = Signatures(SignatureOptions.of(settings), everything=False)
    for page in pages[:200]:
        signatures.of(page)
    best = 0.0
    for _ in range(3):
        started = time.perf_counter()
        for page in pages:
            signatures.of(page)
        best = max(best, len(pages) / (time.perf_counter() - started))
    return best


def _featurize_in_processes(settings: Settings, pages: list[Page], processes: int) -> float:
    """Return the pages per second of featurizing on all cores, transfers included: the upper limit of any stream."""
    records = [PlainRecord("pages", 0, number, 0, None, write_page(page), ()) for number, page in enumerate(pages)]
    pool = PagePool(Signatures(SignatureOptions.of(settings), everything=False), None, processes)
    pool.start()
    best = 0.0
    for _ in range(2):
        started = time.perf_counter()
        made = sum(len(batch.records) for batch in pool.featurize(records, len(records)))
        best = max(best, made / (time.perf_counter() - started))
    pool.close()
    return best


async def _embedded(settings: Settings, pages: list[Page]) -> float:
    verdicts = 0

    def count(verdict: bytes) -> None:
        nonlocal verdicts
        verdicts += 1

    with tempfile.TemporaryDirectory() as directory:
        async with Embedded(Path(directory), settings, on_verdict=count) as stream:
            await stream.feed(pages[:WARM])
            await _quiet([os.getpid()])
            await stream.drain()
            started = time.perf_counter()
            for start in range(WARM, len(pages), 500):
                await stream.feed(pages[start : start + 500])
            await stream.drain()
            rate = (len(pages) - WARM) / (time.perf_counter() - started)
            await stream.finish()
    assert verdicts >= len(pages), f"expected {len(pages)} verdicts, got {verdicts}"
    return rate


class Kafka:
    """The services as processes with a broker."""

    def __init__(self, settings: Settings, directory: Path) -> None:
        self._settings = settings
        self._directory = directory
        self._topics = Topics.under(settings.prefix)

    async def measure(
        self, pages: list[Page], seconds: float
    ) -> tuple[float, float, float, float, dict[str, float], dict[str, float], dict[str, float]]:
        """Return pages/s, p50, p99, their load, CPU in µs per page by service, messages and bytes per page by topic."""
        async with KafkaLog(self._settings) as log:
            await log.create_topics(topic_specs(self._settings))
        warm, values = [write_page(page) for page in pages[:WARM]], [write_page(page) for page in pages[WARM:]]
        with self._workers() as workers:
            await self._produce(warm)
            await self._last_first_verdict(WARM)
            await _quiet([process.pid for process in workers.values()])
            # Produce the backlog before the services start, so that the crawler's CPU time is not measured.
            workers["featurizer"].send_signal(signal.SIGSTOP)
            await self._produce(values)
            before = {name: cpu_seconds(process.pid) for name, process in workers.items()}
            started = time.time()
            workers["featurizer"].send_signal(signal.SIGCONT)
            ended = await self._last_first_verdict(len(pages))
            rate = len(values) / (ended - started)
            spent = {name: cpu_seconds(process.pid) - before[name] for name, process in workers.items()}
            messages, sizes = await self._traffic(len(pages))
            load = rate / 4
            # Send the same pages again, each with an additional word of its own.
            count = int(load * seconds)
            again = [_with_a_word(pages[number % len(pages)], number) for number in range(count)]
            p50, p99 = await self._latencies(again, load)
        shares = {name: cpu / len(values) * 1e6 for name, cpu in spent.items()}
        return rate, p50, p99, load, shares, messages, sizes

    @contextmanager
    def _workers(self) -> Iterator[dict[str, "subprocess.Popen[bytes]"]]:
        environment = os.environ | {variable: value for variable, value, _ in self._settings.describe()}
        workers = {}
        for number, name in enumerate(SERVICES):
            own = {"NEARDUP_STATE": str(self._directory / name), "NEARDUP_WEB_PORT": str(16_066 + number)}
            command = [str(Path(sys.executable).with_name("neardup")), "worker", name]
            with (self._directory / f"{name}.log").open("wb") as log:
                workers[name] = subprocess.Popen(command, env=environment | own, stdout=log, stderr=log)
        try:
            yield workers
        finally:
            for process in workers.values():
                process.terminate()
            for process in workers.values():
                process.wait(60)

    async def _produce(self, values: list[bytes]) -> None:
        producer = self._producer()
        await producer.start()
        sent = [
            await producer.send(self._topics.pages, value, partition=number % self._settings.page_partitions)
            for number, value in enumerate(values)
        ]
        await asyncio.gather(*sent)
        await producer.stop()

    async def _last_first_verdict(self, count: int) -> float:
        """Wait until `count` documents have a verdict. Return the time of the last first verdict in seconds."""
        consumer = await self._consumer()
        verdicts = await self._verdicts(consumer, count)
        await consumer.stop()
        return max(timestamp for _, timestamp in verdicts.values()) / 1000

    async def _latencies(self, values: list[bytes], load: float) -> tuple[float, float]:
        """Send at this load. Return p50 and p99 of the time from a page's timestamp to its first verdict."""
        consumer = await self._consumer(at_end=True)
        producer = self._producer(linger_ms=LINGER_MS)
        await producer.start()
        sending = asyncio.create_task(self._send_at(producer, values, load))
        verdicts = await self._verdicts(consumer, len(values))
        await sending
        await producer.stop()
        await consumer.stop()
        waits = [verdict.latency_ms or 0.0 for verdict, _ in verdicts.values()]
        settled = np.array(waits)[len(waits) // 10 :]
        return float(np.percentile(settled, 50)), float(np.percentile(settled, 99))

    async def _verdicts(self, consumer: AIOKafkaConsumer, count: int) -> dict[str, tuple[Verdict, int]]:
        """Return the first verdict of `count` documents with its timestamp.

        Verdicts are read only when there are enough of them, so that the measurement does not use the measured cores.
        """
        partitions = list(consumer.assignment())
        start = {partition: await consumer.position(partition) for partition in partitions}
        first: dict[str, tuple[Verdict, int]] = {}
        wanted = count
        while len(first) < count:
            while sum((await consumer.end_offsets(partitions)).values()) < sum(start.values()) + wanted:
                await asyncio.sleep(0.2)
            for records in (await consumer.getmany(timeout_ms=100)).values():
                for record in records:
                    verdict = read_verdict(record.value)
                    first.setdefault(verdict.document, (verdict, record.timestamp))
            read = sum([await consumer.position(partition) for partition in partitions]) - sum(start.values())
            # Some documents have more than one verdict.
            wanted = max(wanted, read + (count - len(first) if read >= wanted else 0))
        return first

    async def _send_at(self, producer: AIOKafkaProducer, values: list[bytes], load: float) -> None:
        started = time.perf_counter()
        for number, value in enumerate(values):
            await producer.send(self._topics.pages, value, partition=number % self._settings.page_partitions)
            ahead = number / load - (time.perf_counter() - started)
            if ahead > TICK_SECONDS:
                await asyncio.sleep(ahead)

    def _producer(self, linger_ms: int = 0) -> AIOKafkaProducer:
        # The default of 16 KB is less than a page, and would cause a request per page.
        return AIOKafkaProducer(
            bootstrap_servers=self._settings.broker, max_batch_size=BATCH_BYTES, linger_ms=linger_ms
        )

    async def _consumer(self, *, at_end: bool = False) -> AIOKafkaConsumer:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=self._settings.broker, fetch_max_wait_ms=100, auto_offset_reset="earliest"
        )
        await consumer.start()
        partitions = [TopicPartition(self._topics.verdicts, n) for n in range(self._settings.verdict_partitions)]
        consumer.assign(partitions)
        if at_end:
            await consumer.seek_to_end(*partitions)
        return consumer

    async def _traffic(self, count: int) -> tuple[dict[str, float], dict[str, float]]:
        """Return messages and bytes per page by topic. Bytes are known only for a broker whose files are accessible."""
        consumer = await self._consumer()
        messages, sizes = {}, {}
        for spec in topic_specs(self._settings):
            ends = await consumer.end_offsets([TopicPartition(spec.name, n) for n in range(spec.partitions)])
            name = spec.name.rpartition(".")[2].replace("-", "_")
            messages[name] = sum(ends.values()) / count
            files = list((self._directory / "kafka").rglob(f"{spec.name}-*/*.log"))
            if files:
                sizes[name] = sum(file.stat().st_size for file in files) / count
        await consumer.stop()
        return messages, sizes


async def _quiet(pids: list[int]) -> None:
    """Wait until the processes are idle, which means that they have started and loaded everything."""
    spent, before = sum(map(cpu_seconds, pids)), 0.0
    while spent - before > QUIET_SHARE * QUIET_SECONDS:
        await asyncio.sleep(QUIET_SECONDS)
        spent, before = sum(map(cpu_seconds, pids)), spent


def _with_a_word(page: Page, number: int) -> bytes:
    return write_page(replace(page, html=page.content + b"<p>visitor%d" % number, text=None))
