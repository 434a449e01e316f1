"""Tests that services continue after any record on any topic, and that every page gets a verdict or a dead letter."""

import asyncio
import os
import random
from collections import Counter
from collections.abc import Iterable

import pytest

from neardup.deployment.topics import topic_specs
from neardup.log import Output
from neardup.log.kafka import KafkaLog
from neardup.messages import dead_letters
from neardup.messages.pages import write_page
from neardup.messages.topics import Topics
from neardup.messages.verdicts import read_verdict
from neardup.sample import sample_crawl
from neardup.settings import Settings
from tests.faults.hostile import hostile_records
from tests.faults.results import record
from tests.faults.vitals import MEGABYTE, bounds, peak_memory
from tests.log.test_contract import Recorder, join
from tests.messages.test_readers import GOOD
from tests.services.workers import Deployment

pytestmark = [pytest.mark.kafka, pytest.mark.real_broker, pytest.mark.faults]

RECORDS = int(os.environ.get("NEARDUP_TEST_FUZZ_RECORDS", "600"))
"""Number of records per topic. `make faults` sends 100,000."""


async def test_hostile_records_on_every_topic_stop_no_service(deployment: Deployment) -> None:
    settings = deployment.settings
    topics = Topics.under(settings.prefix)
    draw = random.Random(7)
    pages = [made.page for made in sample_crawl(60, seed=11, mean_bytes=8000)]
    messages = [value for value in GOOD.values() if value is not None]
    async with KafkaLog(settings) as log:
        await log.create_topics(topic_specs(settings))
        workers = {
            name: deployment.start("neardup", "worker", name)
            for name in ("featurizer", "shard", "aggregator", "recluster")
        }
        for worker in workers.values():
            await asyncio.to_thread(worker.await_ready)
        await _send(log, topics.pages, hostile_records(draw, RECORDS, [write_page(page) for page in pages]))
        for topic in (topics.probes, topics.inbox, topics.documents):
            await _send(log, topic, hostile_records(draw, RECORDS, messages), await log.partitions(topic))
        await log.send([Output(topics.pages, 0, None, write_page(page)) for page in pages])
        total = RECORDS + len(pages)
        answered, letters = await _answered(log, settings, total)
    # The services have survived, and each of them makes progress.
    for worker in deployment.workers:
        assert worker.process.poll() is None, worker.log.read_text()[-3000:]
        worker.await_ready()
    assert len(answered) == total
    most = {name: peak_memory(worker) // MEGABYTE for name, worker in workers.items()}
    record("hostile records", records=RECORDS, **{f"{name}_mb": megabytes for name, megabytes in most.items()})
    assert all(megabytes < bounds(settings)[name] for name, megabytes in most.items()), most
    for topic in (topics.probes, topics.inbox, topics.documents):
        assert letters[topic] > RECORDS / 2


Records = Iterable[tuple[bytes | None, bytes | None]]


async def _send(log: KafkaLog, topic: str, records: Records, partitions: int = 2) -> None:
    outputs = [Output(topic, number % partitions, key, value) for number, (key, value) in enumerate(records)]
    for start in range(0, len(outputs), 200):
        await log.send(outputs[start : start + 200])


async def _answered(log: KafkaLog, settings: Settings, total: int) -> tuple[set[str], Counter[str]]:
    """Return the pages with a verdict or dead letter and the dead letters per topic, when no more of them arrive."""
    topics = Topics.under(settings.prefix)
    verdicts, verdict_recorder = await join(log, topics.verdicts, "verdict-reader", Recorder())
    rejects, rejected = await join(log, topics.dead_letters, "rejected", Recorder())
    answered: set[str] = set()
    letters: Counter[str] = Counter()
    quiet = 0
    async with asyncio.timeout(60 + RECORDS / 20):
        while len(answered) < total or quiet < 10:
            found = [
                each
                for consumer, recorder in ((verdicts, verdict_recorder), (rejects, rejected))
                for records in (await consumer.poll(recorder.mine, timeout=0.2, max_records=5000)).values()
                for each in records
            ]
            quiet = 0 if found else quiet + 1
            for each in found:
                if each.topic == topics.verdicts:
                    answered.add(read_verdict(each.value or b"").document)
                else:
                    letter = dead_letters.decode(each.value)
                    assert letter.reason
                    letters[letter.topic] += 1
                    if letter.topic == topics.pages:
                        answered.add(f"{letter.partition}:{letter.offset}")
    await verdicts.close()
    await rejects.close()
    return answered, letters
