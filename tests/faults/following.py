"""A reader of verdicts that records the first and the last verdict on each page."""

import asyncio
import time
from itertools import pairwise

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from neardup.messages import dead_letters
from neardup.messages.topics import Topics
from neardup.messages.verdicts import read_verdict
from neardup.settings import Settings
from neardup.types import DeadLetter, Verdict
from tests.services.test_stream import number_of


class Follower:
    """Follows verdicts and dead letters from the beginning. Pages are numbered in the order of sending."""

    def __init__(self, settings: Settings) -> None:
        self.last: dict[int, Verdict] = {}
        self.first_at: dict[int, float] = {}
        """Time of the first verdict on each page, by the aggregator's clock."""
        self.dead: set[int] = set()
        self.received_at = time.monotonic()
        self._settings = settings
        self._topics = Topics.under(settings.prefix)

    async def run(self) -> None:
        """Read until cancelled."""
        consumer = AIOKafkaConsumer(bootstrap_servers=self._settings.broker, auto_offset_reset="earliest")
        await consumer.start()
        try:
            partitions = [TopicPartition(self._topics.verdicts, n) for n in range(self._settings.verdict_partitions)]
            consumer.assign([*partitions, TopicPartition(self._topics.dead_letters, 0)])
            while True:
                try:
                    found = await consumer.getmany(timeout_ms=100)
                except KafkaError:
                    await asyncio.sleep(0.2)  # an outage, which the test causes
                    continue
                for partition, records in found.items():
                    self.received_at = time.monotonic()
                    for record in records:
                        if partition.topic == self._topics.verdicts:
                            self._verdict(read_verdict(record.value), record.timestamp / 1000)
                        else:
                            self._rejected(dead_letters.decode(record.value))
        finally:
            await consumer.stop()

    def unsettled(self, count: int) -> list[int]:
        """Return which of the first `count` pages have neither a verdict nor a dead letter."""
        return sorted(set(range(count)) - self.first_at.keys() - self.dead)

    def longest_pause(self) -> float:
        """Return the longest time in seconds between two first verdicts."""
        moments = sorted(self.first_at.values())
        return max((after - before for before, after in pairwise(moments)), default=0.0)

    def _verdict(self, verdict: Verdict, at: float) -> None:
        number = number_of(verdict.document, self._settings)
        self.first_at.setdefault(number, at)
        if number not in self.last or self.last[number].revision <= verdict.revision:
            self.last[number] = verdict

    def _rejected(self, letter: DeadLetter) -> None:
        if letter.topic == self._topics.pages:
            self.dead.add(number_of(f"{letter.partition}:{letter.offset}", self._settings))
