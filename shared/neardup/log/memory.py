"""The in-process log: real code for the embedded run, not a test double.

Records live in lists, in memory only. A run that resumes after a restart restores the state of its stages, and starts
the log at offsets above all that the stages have processed (`first`). `trim` drops records that are no longer needed.
"""

import asyncio
import contextlib
import time
import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

from neardup.errors import LogError, LogGap, TopicMismatch
from neardup.log.contract import Consumer, Listener, Log, Output, Partition, PlainRecord, Record, TopicSpec

_TRIM_AT_LEAST: Final = 64
"""Dropping records moves the rest of the list, so `trim` waits for this many records, and for half of the list."""


class MemoryLog(Log):
    """A log in this process. Use from one event loop.

    `first` gives topics the offset at which their partitions begin. A read from an earlier offset returns records from
    the beginning: the earlier ones were written and read by a previous run.
    """

    def __init__(self, first: Mapping[str, int] | None = None, *, clock: Callable[[], float] = time.time) -> None:
        self._first = dict(first or {})
        self._clock = clock
        self._topics: dict[str, list[_Records]] = {}
        self._groups: dict[tuple[str, str], _Group] = {}
        self._offsets: dict[str, dict[Partition, int]] = {}
        self._round_robin = 0
        self._appended = asyncio.Condition()

    async def start(self) -> None:
        return

    async def stop(self) -> None:
        return

    async def send(self, outputs: Sequence[Output]) -> None:
        now = int(self._clock() * 1000)
        for output in outputs:
            self._append(output, now)
        async with self._appended:
            self._appended.notify_all()

    async def consumer(
        self, topic: str, group: str, listener: Listener, *, instance: str = "", patience: float = 0.0
    ) -> "MemoryConsumer":
        await self.partitions(topic)
        membership = self._groups.setdefault((group, topic), _Group())
        return MemoryConsumer(self, topic, group, membership, listener)

    async def partitions(self, topic: str) -> int:
        if topic not in self._topics:
            raise TopicMismatch(f"topic {topic} does not exist; create it first (neardup topics create)")
        return len(self._topics[topic])

    async def create_topics(self, specs: Sequence[TopicSpec]) -> dict[str, str]:
        report = {}
        for spec in specs:
            existing = self._topics.get(spec.name)
            if existing is None:
                first = self._first.get(spec.name, 0)
                self._topics[spec.name] = [_Records(first) for _ in range(spec.partitions)]
                report[spec.name] = "created"
            elif len(existing) == spec.partitions:
                report[spec.name] = "exists"
            else:
                report[spec.name] = f"has {len(existing)} partitions, expected {spec.partitions}"
        return report

    def read(self, partition: Partition, offset: int, limit: int) -> Sequence[PlainRecord]:
        """Return up to `limit` records from `offset` on, without a group. Raises LogGap if they were trimmed."""
        kept = self._of(partition)
        start = max(offset, kept.first) - kept.trimmed
        if start < 0:
            raise LogGap(f"{partition}: expected to read offset {offset}, records before {kept.trimmed} are trimmed")
        return kept.records[start : start + limit]

    def end(self, partition: Partition) -> int:
        """Return the next offset to be written."""
        return self._of(partition).end

    def trim(self, partition: Partition, offset: int) -> None:
        """Allow the log to drop all records before `offset`, now or later."""
        kept = self._of(partition)
        count = min(offset, kept.end) - kept.trimmed
        if count >= max(_TRIM_AT_LEAST, len(kept.records) - count):
            del kept.records[:count]
            kept.trimmed += count

    async def wait(self, timeout: float) -> None:
        """Wait until something is appended or a group changes, at most `timeout` seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout), self._appended:
                await self._appended.wait()

    async def wake(self) -> None:
        """Wake every consumer that waits in `wait`."""
        async with self._appended:
            self._appended.notify_all()

    def committed(self, group: str, partition: Partition) -> int | None:
        """Return the committed offset of a group, or None."""
        return self._offsets.get(group, {}).get(partition)

    def commit(self, group: str, offsets: Mapping[Partition, int]) -> None:
        """Store committed offsets."""
        self._offsets.setdefault(group, {}).update(offsets)

    def _append(self, output: Output, now: int) -> None:
        if output.topic not in self._topics:
            raise TopicMismatch(f"topic {output.topic} does not exist; create it with create_topics")
        partitions = self._topics[output.topic]
        number = output.partition
        if number is None:
            self._round_robin += output.key is None
            number = (self._round_robin if output.key is None else zlib.crc32(output.key)) % len(partitions)
        if not 0 <= number < len(partitions):
            raise LogError(f"{output.topic}: expected a partition from 0 to {len(partitions) - 1}, got {number}")
        kept = partitions[number]
        headers = tuple(output.headers)
        kept.records.append(PlainRecord(output.topic, number, kept.end, now, output.key, output.value, headers))

    def _of(self, partition: Partition) -> "_Records":
        return self._topics[partition.topic][partition.partition]


class _Records:
    """Records of one partition. `records[0]` has the offset `trimmed`, and the partition began at `first`."""

    __slots__ = ("first", "records", "trimmed")

    def __init__(self, first: int) -> None:
        self.first = self.trimmed = first
        self.records: list[PlainRecord] = []

    @property
    def end(self) -> int:
        return self.trimmed + len(self.records)


class _Group:
    """The members of a group. Every join and leave starts a new generation that all members must enter."""

    def __init__(self) -> None:
        self.generation = 0
        self.members: list[MemoryConsumer] = []

    def change(self) -> None:
        self.generation += 1

    def settled(self) -> bool:
        return all(member.generation == self.generation for member in self.members)

    def share(self, member: "MemoryConsumer", count: int) -> list[int]:
        place = self.members.index(member)
        return list(range(place, count, len(self.members)))


class MemoryConsumer(Consumer):
    """A member of a group of the in-process log."""

    def __init__(self, log: MemoryLog, topic: str, group: str, membership: _Group, listener: Listener) -> None:
        self.generation = -1
        self._log = log
        self._topic = topic
        self._group = group
        self._membership = membership
        self._listener = listener
        self._positions: dict[Partition, int] = {}
        self._ready = False
        membership.members.append(self)
        membership.change()

    async def poll(
        self, partitions: Collection[Partition], *, timeout: float, max_records: int
    ) -> Mapping[Partition, Sequence[Record]]:
        deadline = time.monotonic() + timeout
        while True:
            if self not in self._membership.members:
                raise LogError("this consumer has left its group")
            await self._enter_generation()
            if self._ready and (found := self._available(partitions, max_records)):
                return found
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                return {}
            await self._log.wait(remaining)

    def seek(self, partition: Partition, offset: int) -> None:
        if partition not in self._positions:
            raise LogError(f"{partition} is not assigned to this member")
        self._positions[partition] = offset

    async def commit(self, offsets: Mapping[Partition, int]) -> None:
        strange = offsets.keys() - self._positions.keys()
        if strange:
            raise LogError(f"expected partitions of this member, got {', '.join(map(str, strange))}")
        self._log.commit(self._group, offsets)

    async def committed(self, partition: Partition) -> int | None:
        return self._log.committed(self._group, partition)

    async def bounds(self, partitions: Collection[Partition]) -> Mapping[Partition, tuple[int, int]]:
        return {partition: (0, self._log.end(partition)) for partition in partitions}

    async def close(self) -> None:
        if self in self._membership.members:
            await self._revoke()
            await self.abandon()

    async def abandon(self) -> None:
        """Leave the group like a killed process, without a revocation or a commit."""
        if self in self._membership.members:
            self._membership.members.remove(self)
            self._membership.change()
            await self._log.wake()

    async def _enter_generation(self) -> None:
        if self.generation != self._membership.generation:
            await self._revoke()
            self.generation = self._membership.generation
            await self._log.wake()
        if not self._ready and self._membership.settled():
            count = await self._log.partitions(self._topic)
            mine = [Partition(self._topic, number) for number in self._membership.share(self, count)]
            for partition in mine:
                self._positions[partition] = self._log.committed(self._group, partition) or 0
            await self._listener.assigned(self, mine)
            self._ready = True

    async def _revoke(self) -> None:
        if self._ready:
            self._ready = False
            await self._listener.revoked(self, list(self._positions))
        self._positions.clear()

    def _available(self, partitions: Collection[Partition], max_records: int) -> dict[Partition, Sequence[Record]]:
        found: dict[Partition, Sequence[Record]] = {}
        for partition in partitions:
            position = self._positions.get(partition)
            if position is None:
                continue
            if position > self._log.end(partition):
                raise LogGap(
                    f"{partition} ends at offset {self._log.end(partition)}, but the state has reached {position}: "
                    "the log was replaced; delete the state directory to rebuild it"
                )
            if records := self._log.read(partition, position, max_records):
                self._positions[partition] = records[-1].offset + 1
                found[partition] = records
                max_records -= len(records)
        return found
