"""Benchmark of the runner: 1 KB records through a stage that copies them, against a bare aiokafka loop.

Both read the same topic and write to another one with as many partitions. Both use an idempotent producer with the same
compression, and end when everything is acknowledged and committed. They take turns, and the best run of each counts.
The bare loop is the fastest one without any guarantee: getmany, one `send` per record, no wait for acknowledgements
before the end.
"""

import asyncio
import random
import tempfile
import time
import uuid
from pathlib import Path

import aiokafka

from neardup.log import Output, TopicSpec
from neardup.log.kafka import KafkaLog
from neardup.runtime.runner import Runner
from neardup.settings import Settings
from tests.bench.result import Result
from tests.support.brokers import find_broker
from tests.support.stages import Copier

PARTITIONS = 4
RECORD_BYTES = 1024


def run(*, full: bool) -> list[Result]:
    """Return the ratio of the runner's records per second to those of the bare loop, and both figures."""
    count = 1_000_000 if full else 200_000
    with tempfile.TemporaryDirectory() as directory, find_broker(Path(directory) / "kafka") as broker:
        settings = Settings(broker=broker.bootstrap, state=Path(directory) / "state")
        bare, ours = asyncio.run(_measure(settings, count, rounds=3))
        about = f"a bare aiokafka loop, {count:,} records of 1 KB, {broker.about}"
    return [
        Result("runner_vs_bare", ours / bare, "ratio", about, goal=0.7),
        Result("runner_records_per_s", ours, "records/s", about),
        Result("bare_records_per_s", bare, "records/s", "itself"),
    ]


async def _measure(settings: Settings, count: int, rounds: int) -> tuple[float, float]:
    log = KafkaLog(settings)
    await log.start()
    source, target, letters = (f"{name}-{uuid.uuid4().hex[:8]}" for name in ("source", "target", "letters"))
    await log.create_topics([TopicSpec(source, PARTITIONS), TopicSpec(target, PARTITIONS), TopicSpec(letters, 1)])
    draw = random.Random(1)
    # Half random, half text-like, so that compression has as much work as with real messages.
    payloads = [draw.randbytes(RECORD_BYTES // 2) + b"neardup " * (RECORD_BYTES // 16) for _ in range(1000)]
    for start in range(0, count, 20_000):
        batch = [Output(source, n % PARTITIONS, b"%d" % n, payloads[n % 1000]) for n in range(start, start + 20_000)]
        await log.send(batch)
    best = {"bare": 0.0, "ours": 0.0}
    for number in range(rounds):
        for name, contender in (
            ("bare", _bare(settings, source, target, f"bare-{number}", count)),
            ("ours", _ours(log, settings, source, target, letters, f"ours-{number}", count)),
        ):
            began = time.perf_counter()
            await contender
            best[name] = max(best[name], count / (time.perf_counter() - began))
    await log.stop()
    return best["bare"], best["ours"]


async def _bare(settings: Settings, source: str, target: str, group: str, count: int) -> None:
    consumer = aiokafka.AIOKafkaConsumer(
        source,
        bootstrap_servers=settings.broker,
        group_id=group,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        max_partition_fetch_bytes=8 * 2**20,
    )
    producer = aiokafka.AIOKafkaProducer(
        bootstrap_servers=settings.broker,
        enable_idempotence=True,
        acks="all",
        compression_type=settings.compression,
        max_batch_size=2**20,
        linger_ms=5,
    )
    await consumer.start()
    await producer.start()
    done = 0
    while done < count:
        for partition, records in (await consumer.getmany(timeout_ms=100, max_records=8000)).items():
            for record in records:
                await producer.send(target, record.value, key=record.key, partition=partition.partition)
            done += len(records)
    await producer.flush()
    await consumer.commit()
    await consumer.stop()
    await producer.stop()


async def _ours(
    log: KafkaLog, settings: Settings, source: str, target: str, letters: str, group: str, count: int
) -> None:
    stages: list[Copier] = []

    def stage(partition: object) -> Copier:
        stages.append(Copier(target))
        return stages[-1]

    runner = Runner(log=log, topic=source, group=group, make_stage=stage, settings=settings, dead_letter_topic=letters)
    running = asyncio.create_task(runner.run())
    while sum(stage.copied for stage in stages) < count:
        if running.done():
            running.result()
        await asyncio.sleep(0.005)
    runner.stop()
    await running
