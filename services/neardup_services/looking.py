"""Reading a topic to look at it: from its oldest record or from now on, to its end or for ever. Changes nothing."""

import asyncio
import signal
import uuid
from collections.abc import AsyncGenerator, Collection

from neardup.log import Consumer, Listener, Log, Partition, Record


def stop_by_signal() -> asyncio.Event:
    """Set by SIGINT or SIGTERM."""
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop


async def records(
    log: Log, topic: str, prefix: str, stop: asyncio.Event, *, new: bool = False, follow: bool = False
) -> AsyncGenerator[Record, None]:
    """The records of a topic.

    Ends with `stop`, or, unless it follows, with the last record that was there at the start.
    """
    start = _Start(new)
    # A group of its own that commits nothing.
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
    """Reads from the oldest record, or from the next one; knows where the last one was at the start."""

    def __init__(self, new: bool) -> None:
        self.mine: list[Partition] = []
        self.positions: dict[Partition, int] = {}
        self._new = new
        self.ends: dict[Partition, int] = {}

    @property
    def reached(self) -> bool:
        """Whether everything that was there at the start has been read."""
        return bool(self.ends) and all(self.positions[each] >= end for each, end in self.ends.items())

    async def assigned(self, consumer: Consumer, partitions: Collection[Partition]) -> None:
        """Go to the start."""
        for partition, (first, end) in (await consumer.bounds(partitions)).items():
            self.positions[partition] = end if self._new else first
            self.ends[partition] = end
            consumer.seek(partition, self.positions[partition])
        self.mine = list(partitions)

    async def revoked(self, consumer: Consumer, partitions: Collection[Partition]) -> None:
        """Nothing to save."""
        self.mine = []
