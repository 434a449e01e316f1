"""Reads the verdicts while they come: what was said last of each page, when it was first said, and who still waits."""

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
    """Follows verdicts and dead letters from the beginning. Numbers are those of the pages as they were sent."""

    def __init__(self, settings: Settings) -> None:
        self.last: dict[int, Verdict] = {}
        self.first_at: dict[int, float] = {}
        """When the first verdict on a page was written, by the aggregator's clock."""
        self.dead: set[int] = set()
        self.heard_at = time.monotonic()
        self._settings = settings
        self._topics = Topics.under(settings.prefix)

    async def run(self) -> None:
        """Until cancelled."""
        consumer = AIOKafkaConsumer(bootstrap_servers=self._settings.broker, auto_offset_reset="earliest")
        await consumer.start()
        try:
            partitions = [TopicPartition(self._topics.verdicts, n) for n in range(self._settings.verdict_partitions)]
            consumer.assign([*partitions, TopicPartition(self._topics.dead_letters, 0)])
            while True:
                try:
                    found = await consumer.getmany(timeout_ms=100)
                except KafkaError:
                    await asyncio.sleep(0.2)  # an outage: that is what this is about
                    continue
                for partition, records in found.items():
                    self.heard_at = time.monotonic()
                    for record in records:
                        if partition.topic == self._topics.verdicts:
                            self._told(read_verdict(record.value), record.timestamp / 1000)
                        else:
                            self._rejected(dead_letters.decode(record.value))
        finally:
            await consumer.stop()

    def waiting(self, count: int) -> list[int]:
        """Of the first so many pages, those with neither verdict nor dead letter."""
        return sorted(set(range(count)) - self.first_at.keys() - self.dead)

    def longest_pause(self) -> float:
        """The longest time between two first verdicts."""
        moments = sorted(self.first_at.values())
        return max((after - before for before, after in pairwise(moments)), default=0.0)

    def _told(self, verdict: Verdict, at: float) -> None:
        number = number_of(verdict.document, self._settings)
        self.first_at.setdefault(number, at)
        if number not in self.last or self.last[number].revision <= verdict.revision:
            self.last[number] = verdict

    def _rejected(self, letter: DeadLetter) -> None:
        if letter.topic == self._topics.pages:
            self.dead.add(number_of(f"{letter.partition}:{letter.offset}", self._settings))
