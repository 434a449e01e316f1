"""Runners between two topics of a log, for tests of the runner."""

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Self

from neardup.log import Log, Output, Partition, Record, TopicSpec
from neardup.runtime.runner import Runner
from neardup.runtime.stage import Stage
from neardup.settings import Settings
from tests.log.test_contract import Recorder, join, read
from tests.support.stages import Copier, Counter


class Place:
    """A source and a target topic on a log, and runners between them."""

    def __init__(self, log: Log, settings: Settings) -> None:
        name = uuid.uuid4().hex[:8]
        self.log = log
        self.settings = settings
        self.source, self.target, self.letters = f"source-{name}", f"target-{name}", f"letters-{name}"
        self.stages: list[Copier] = []

    @classmethod
    async def made(cls, log: Log, state: Path) -> Self:
        """Create a place with its topics and with short intervals in the settings."""
        settings = Settings(state=state, checkpoint_seconds=0.1, poll_records=100, stuck_seconds=0.4)
        place = cls(log, settings)
        await log.create_topics([TopicSpec(place.source, 2), TopicSpec(place.target, 2), TopicSpec(place.letters, 1)])
        return place

    def stage(self, partition: Partition) -> Stage:
        self.stages.append(Copier(self.target))
        return self.stages[-1]

    def counter(self, partition: Partition) -> Stage:
        self.stages.append(Counter(self.target))
        return self.stages[-1]

    def runner(
        self,
        make_stage: Callable[[Partition], Stage] | None = None,
        settings: Settings | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> Runner:
        return Runner(
            log=self.log,
            topic=self.source,
            group=f"copiers-{self.source}",
            make_stage=make_stage or self.stage,
            settings=settings or self.settings,
            dead_letter_topic=self.letters,
            clock=clock,
        )

    async def feed(self, count: int, partitions: int = 2, start: int = 0, size: int = 0) -> None:
        await self.log.send(
            [Output(self.source, n % partitions, b"key", (b"%d" % n).zfill(size)) for n in range(start, start + count)]
        )

    async def copied(self, count: int) -> list[Record]:
        return await self._read(self.target, count)

    async def rejected(self, count: int) -> list[Record]:
        return await self._read(self.letters, count)

    async def _read(self, topic: str, count: int) -> list[Record]:
        consumer, recorder = await join(self.log, topic, f"check-{uuid.uuid4().hex[:6]}", Recorder())
        try:
            return await read(consumer, recorder, count)
        finally:
            await consumer.close()

    async def committed(self) -> dict[int, int | None]:
        consumer, recorder = await join(self.log, self.source, "copiers", Recorder())
        async with asyncio.timeout(10):
            while len(recorder.mine) < 2:
                await consumer.poll((), timeout=0.05, max_records=1)
        found = {each.partition: await consumer.committed(each) for each in recorder.mine}
        await consumer.close()
        return found


@asynccontextmanager
async def running(*runners: Runner) -> AsyncIterator[list["asyncio.Task[None]"]]:
    """Run the runners until the block ends, then stop them cleanly. Their errors are raised here."""
    tasks = [asyncio.create_task(runner.run()) for runner in runners]
    try:
        yield tasks
    finally:
        for runner in runners:
            runner.stop()
        await asyncio.wait(tasks, timeout=20)
    for task in tasks:
        task.result()


async def until(reached: Callable[[], bool], seconds: float = 15) -> None:
    async with asyncio.timeout(seconds):
        while not reached():
            await asyncio.sleep(0.01)


def sorted_values(records: Sequence[Record]) -> list[int]:
    return sorted(int(record.value or b"") for record in records)
