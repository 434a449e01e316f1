"""The Kafka log, on aiokafka.

All outputs that wait for a partition are packed into one record batch (`lanes.py`), which is several times cheaper than
a future per record.
"""

import asyncio
import time
from collections.abc import Sequence
from typing import Any, Final

import aiokafka
import xxhash
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

from neardup.errors import SendFailed, TopicMismatch
from neardup.log.contract import Listener, Log, Output, TopicSpec
from neardup.log.kafka.connecting import REFUSED, bootstrapped, connection, disconnect, refused
from neardup.log.kafka.creating import create_topics
from neardup.log.kafka.lanes import Lane
from neardup.log.kafka.member import KafkaConsumer
from neardup.settings import Settings

_BATCH_BYTES: Final = 2**20
_FETCH_BYTES: Final = 8 * 2**20
_FETCH_LEAST_BYTES: Final = 2**18
_FETCH_PATIENT_BYTES: Final = 4 * 2**20
_FETCH_MOST_BYTES: Final = 4 * 2**20
"""Limit per fetch over all partitions. With tens of megabytes, page faults for fresh memory dominate the cost."""
_FETCH_WAIT_MS: Final = 25
_RETRY_SECONDS: Final = 0.5
_KNOWN_SECONDS: Final = 5.0
_STOP_SECONDS: Final = 2.0
"""Maximum wait for the producer to disconnect. Every `send` has waited for its own acknowledgements before."""


class KafkaLog(Log):
    """A log on a Kafka cluster. With `only_reads` it needs no write right and cannot send."""

    def __init__(self, settings: Settings, *, only_reads: bool = False) -> None:
        self._settings = settings
        self._only_reads = only_reads
        self._connection = connection(settings)
        self._producer: Any = None
        self._counts: dict[str, int] = {}
        self._turn = 0
        self._lanes: dict[tuple[str, int], Lane] = {}

    async def start(self) -> None:
        compression = self._settings.compression
        self._producer = aiokafka.AIOKafkaProducer(
            **self._connection,
            # An idempotent producer needs an id, which the broker gives only to users with a write right.
            enable_idempotence=not self._only_reads,
            acks="all",
            compression_type=None if compression == "none" else compression,
            max_batch_size=_BATCH_BYTES,
            max_request_size=self._settings.max_message_bytes + 2**20,
        )
        await bootstrapped(self._producer, self._settings)

    async def stop(self) -> None:
        if self._producer is not None:
            await disconnect(self._producer, _STOP_SECONDS)

    async def send(self, outputs: Sequence[Output]) -> None:
        assert not self._only_reads
        by_partition: dict[tuple[str, int], list[Output]] = {}
        for output in outputs:
            number = output.partition
            if number is None:
                count = self._counts.get(output.topic) or await self._count(output.topic)
                number = self._by_key(output, count)
            by_partition.setdefault((output.topic, number), []).append(output)
        if not by_partition:
            return
        sent = [self._lane(topic, number).send(some) for (topic, number), some in by_partition.items()]
        try:
            done, _ = await asyncio.wait(sent, return_when=asyncio.FIRST_EXCEPTION)
        finally:
            for each in sent:
                each.cancel()  # has no effect on a future that is done
        errors = [error for each in done if (error := each.exception()) is not None]
        if errors:
            if isinstance(errors[0], REFUSED):
                raise refused(errors[0], "write to a topic", self._settings) from errors[0]
            raise SendFailed(f"outputs were not acknowledged: {errors[0]!r}; is the broker up?") from errors[0]

    async def consumer(
        self, topic: str, group: str, listener: Listener, *, instance: str = "", patience: float = 0.0
    ) -> KafkaConsumer:
        await self.partitions(topic)
        session = int(self._settings.session_timeout_seconds * 1000)
        client = aiokafka.AIOKafkaConsumer(
            **self._connection,
            group_id=group,
            group_instance_id=instance or None,
            enable_auto_commit=False,
            auto_offset_reset="none",
            partition_assignment_strategy=(StickyPartitionAssignor,),
            session_timeout_ms=session,
            heartbeat_interval_ms=max(session // 5, 100),
            rebalance_timeout_ms=max(session, 60_000),
            max_partition_fetch_bytes=max(_FETCH_BYTES, self._settings.max_message_bytes),
            fetch_max_bytes=_FETCH_MOST_BYTES,
            # Many small fetches are expensive for broker and workers, so a fetch waits for some bytes. The wait is
            # short, because a fetch in flight does not include partitions that were read after it was sent.
            fetch_min_bytes=_FETCH_PATIENT_BYTES if patience else _FETCH_LEAST_BYTES,
            fetch_max_wait_ms=max(_FETCH_WAIT_MS, int(patience * 1000)),
        )
        member = KafkaConsumer(client, listener, self._settings)
        client.subscribe([topic], listener=member.relay)
        await bootstrapped(client, self._settings)
        return member

    async def partitions(self, topic: str) -> int:
        client = self._producer.client
        started, first_answer = time.monotonic(), None
        while not (known := client.cluster.partitions_for_topic(topic)):
            await client.add_topic(topic)
            has_answered = await client.force_metadata_update()
            if topic in client.cluster.unauthorized_topics:
                raise refused(topic, "describe the topic", self._settings)
            now = time.monotonic()
            if has_answered:
                # Some brokers may not have a new topic yet.
                first_answer = first_answer or now
                if now - first_answer > _KNOWN_SECONDS:
                    raise TopicMismatch(f"topic {topic} does not exist; create it with: neardup topics create")
            elif now - started > self._settings.request_timeout_seconds:
                raise SendFailed(f"no broker returned the partitions of topic {topic} in {now - started:.0f} s")
            await asyncio.sleep(_RETRY_SECONDS)
        return len(known)

    async def create_topics(self, specs: Sequence[TopicSpec]) -> dict[str, str]:
        return await create_topics(specs, self._settings)

    async def _count(self, topic: str) -> int:
        count = self._counts[topic] = await self.partitions(topic)
        return count

    def _by_key(self, output: Output, count: int) -> int:
        if output.key is None:
            self._turn += 1
            return self._turn % count
        # The hash of Kafka's own clients would in Python take longer than all other steps of sending a record.
        return xxhash.xxh3_64_intdigest(output.key) % count

    def _lane(self, topic: str, number: int) -> Lane:
        lane = self._lanes.get((topic, number))
        if lane is None:
            lane = self._lanes[topic, number] = Lane(self._producer, topic, number)
        return lane
