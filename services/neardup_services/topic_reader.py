"""Reads a topic without committing offsets: from its oldest record or from now on, to its end or until a signal."""

import asyncio
import signal
import uuid
from collections.abc import AsyncGenerator, Collection

from neardup.log import Consumer, Listener, Log, Partition, Record


def stop_on_signal() -> asyncio.Event:
    """Return an event that the first SIGINT or SIGTERM sets. A second one ends the process at once."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    numbers = (signal.SIGINT, signal.SIGTERM)

    def on_signal() -> None:
        stop.set()
        for number in numbers:
            loop.remove_signal_handler(number)

    for number in numbers:
        loop.add_signal_handler(number, on_signal)
    return stop


async def read_records(
    log: Log,
    topic: str,
    prefix: str,
    stop: asyncio.Event,
    *,
    new: bool = False,
    follow: bool = False,
    positioned: asyncio.Event | None = None,
) -> AsyncGenerator[Record, None]:
    """Yield the records of a topic.

    Ends when `stop` is set or, without `follow`, after the last record that existed at the start. Sets `positioned`
    when the start is fixed: with `new`, every record written after that moment is yielded.
    """
    start = _Start(new, positioned or asyncio.Event())
    # Each reader has a group of its own, which never commits.
    consumer = await log.consumer(topic, f"{prefix}.look-{uuid.uuid4().hex[:8]}", start)
    try:
        while not stop.is_set() and (follow or not start.reached):
            found = await consumer.poll(start.mine, timeout=0.2, max_records=5000)
            for partition, some in found.items():
                for record in some:
                    if follow or record.offset < start.ends[partition]:
                        yield record
                start.positions[partition] = some[-1].offset + 1
    finally:
        await consumer.close()


class _Start(Listener):
    """Seeks to the oldest or to the next record, and remembers the end that each partition had at the start."""

    def __init__(self, new: bool, positioned: asyncio.Event) -> None:
        self.mine: list[Partition] = []
        self.positions: dict[Partition, int] = {}
        self._new = new
        self._positioned = positioned
        self.ends: dict[Partition, int] = {}

    @property
    def reached(self) -> bool:
        """True if all records that existed at the start have been read."""
        return bool(self.ends) and all(self.positions[each] >= end for each, end in self.ends.items())

    async def assigned(self, consumer: Consumer, partitions: Collection[Partition]) -> None:
        """Seek to the start or, when this member rejoins the group, to the next unread record."""
        for partition, (first, end) in (await consumer.bounds(partitions)).items():
            self.ends.setdefault(partition, end)
            consumer.seek(partition, self.positions.setdefault(partition, end if self._new else first))
        self.mine = list(partitions)
        self._positioned.set()

    async def revoked(self, consumer: Consumer, partitions: Collection[Partition]) -> None:
        """Stop reading. There is nothing to save."""
        self.mine = []
