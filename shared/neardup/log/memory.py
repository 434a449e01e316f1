"""The in-process log: real code for the embedded run, not a test double.

Records live in lists. With a directory they are also appended to one file per partition, so that a later run goes
on where this one ended:

    <directory>/<topic>-<n>.log     frames: length, CRC-32 of the payload, CRC-32 of these two; then the payload,
                                    msgpack [timestamp, key, value, headers]
    <directory>/groups.msgpack      committed offsets, written beside and renamed

A file that ends inside a frame was cut off by a crash before the record was acknowledged: the tail is dropped. A frame
whose checksum is wrong is CorruptState. Acknowledged means: handed to the operating system.
"""

import asyncio
import contextlib
import os
import struct
import time
import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

import msgpack

from neardup.errors import CorruptState, LogError, LogGap, TopicMismatch
from neardup.log.contract import Consumer, Listener, Log, Output, Partition, Record, TopicSpec

_FRAME: Final = struct.Struct("<III")


class MemoryRecord(NamedTuple):
    """A record of the in-process log."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes]]


class MemoryLog(Log):
    """A log in this process, optionally kept in a directory. Use from one event loop."""

    def __init__(self, directory: Path | None = None, *, clock: Callable[[], float] = time.time) -> None:
        self._directory = directory
        self._clock = clock
        self._topics: dict[str, list[list[MemoryRecord]]] = {}
        self._files: dict[Partition, BinaryIO] = {}
        self._groups: dict[tuple[str, str], _Group] = {}
        self._offsets: dict[str, dict[Partition, int]] = {}
        self._round_robin = 0
        self._appended = asyncio.Condition()

    async def start(self) -> None:
        if self._directory is not None:
            self._directory.mkdir(parents=True, exist_ok=True)
            self._load(self._directory)

    async def stop(self) -> None:
        for file in self._files.values():
            os.fsync(file.fileno())
            file.close()
        self._files.clear()

    async def send(self, outputs: Sequence[Output]) -> None:
        now = int(self._clock() * 1000)
        touched = {self._append(output, now) for output in outputs}
        for partition in touched & self._files.keys():
            self._files[partition].flush()
        async with self._appended:
            self._appended.notify_all()

    async def consumer(self, topic: str, group: str, listener: Listener, *, instance: str = "") -> "MemoryConsumer":
        await self.partitions(topic)
        membership = self._groups.setdefault((group, topic), _Group())
        return MemoryConsumer(self, topic, group, membership, listener)

    async def partitions(self, topic: str) -> int:
        if topic not in self._topics:
            raise TopicMismatch(f"topic {topic} does not exist; create it first (neardup topics create)")
        return len(self._topics[topic])

    async def create_topics(self, specs: Sequence[TopicSpec]) -> dict[str, str]:
        said = {}
        for spec in specs:
            existing = self._topics.get(spec.name)
            if existing is None:
                self._topics[spec.name] = [[] for _ in range(spec.partitions)]
                for number in range(spec.partitions):
                    self._open_file(Partition(spec.name, number))
                said[spec.name] = "created"
            elif len(existing) == spec.partitions:
                said[spec.name] = "exists"
            else:
                said[spec.name] = f"has {len(existing)} partitions, expected {spec.partitions}"
        return said

    def read(self, partition: Partition, offset: int, limit: int) -> Sequence[MemoryRecord]:
        """Records from an offset on, without a group."""
        return self._topics[partition.topic][partition.partition][offset : offset + limit]

    def end(self, partition: Partition) -> int:
        """The next offset to be written."""
        return len(self._topics[partition.topic][partition.partition])

    async def wait(self, timeout: float) -> None:
        """Wait until something is appended or a group changes, at most `timeout` seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout), self._appended:
                await self._appended.wait()

    async def wake(self) -> None:
        """Wake up whoever waits."""
        async with self._appended:
            self._appended.notify_all()

    def committed(self, group: str, partition: Partition) -> int | None:
        """The committed offset of a group."""
        return self._offsets.get(group, {}).get(partition)

    def commit(self, group: str, offsets: Mapping[Partition, int]) -> None:
        """Store committed offsets, durably when there is a directory."""
        self._offsets.setdefault(group, {}).update(offsets)
        if self._directory is not None:
            table = {name: [[*key, value] for key, value in kept.items()] for name, kept in self._offsets.items()}
            beside = self._directory / "groups.msgpack.new"
            beside.write_bytes(msgpack.packb(table))
            beside.replace(self._directory / "groups.msgpack")

    def _append(self, output: Output, now: int) -> Partition:
        if output.topic not in self._topics:
            raise TopicMismatch(f"topic {output.topic} does not exist; create it first")
        partitions = self._topics[output.topic]
        number = output.partition
        if number is None:
            self._round_robin += output.key is None
            number = (self._round_robin if output.key is None else zlib.crc32(output.key)) % len(partitions)
        if not 0 <= number < len(partitions):
            raise LogError(f"{output.topic} has partitions 0 to {len(partitions) - 1}, not {number}")
        partition = Partition(output.topic, number)
        records = partitions[number]
        records.append(MemoryRecord(*partition, len(records), now, output.key, output.value, tuple(output.headers)))
        if partition in self._files:
            payload = msgpack.packb([now, output.key, output.value, list(output.headers)])
            self._files[partition].write(_frame(payload))
        return partition

    def _open_file(self, partition: Partition) -> None:
        if self._directory is not None:
            self._files[partition] = (self._directory / f"{partition}.log").open("ab")

    def _load(self, directory: Path) -> None:
        found: dict[str, dict[int, Path]] = {}
        for path in directory.glob("*.log"):
            topic, _, digits = path.stem.rpartition("-")
            found.setdefault(topic, {})[int(digits)] = path
        for topic, paths in found.items():
            if sorted(paths) != list(range(len(paths))):
                raise CorruptState(
                    f"{directory}: expected partitions 0 to {max(paths)} of {topic}, got {sorted(paths)}; "
                    "restore the missing files"
                )
            self._topics[topic] = [_read_file(topic, n, paths[n]) for n in range(len(paths))]
            for number in paths:
                self._open_file(Partition(topic, number))
        groups = directory / "groups.msgpack"
        if groups.exists():
            try:
                for name, rows in msgpack.unpackb(groups.read_bytes()).items():
                    self._offsets[name] = {Partition(topic, number): offset for topic, number, offset in rows}
            except Exception as error:
                raise CorruptState(
                    f"{groups}: expected the committed offsets: {error!r}; delete the file to read everything again"
                ) from error


class _Group:
    """Who is in a group. Every join and leave starts a new generation that all members must enter."""

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
            raise LogError(f"{', '.join(map(str, strange))} not assigned to this member any more")
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
        """Leave as a killed process would: nothing is revoked, nothing committed."""
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
                    f"{partition} ends at offset {self._log.end(partition)}, the state has reached {position}: "
                    "the log was replaced; delete the state directory to build it anew"
                )
            if records := self._log.read(partition, position, max_records):
                self._positions[partition] = position + len(records)
                found[partition] = records
                max_records -= len(records)
        return found


def _frame(payload: bytes) -> bytes:
    # The header has a checksum of its own: an altered length must not look like a torn tail.
    head = struct.pack("<II", len(payload), zlib.crc32(payload))
    return head + struct.pack("<I", zlib.crc32(head)) + payload


def _read_file(topic: str, number: int, path: Path) -> list[MemoryRecord]:
    data = path.read_bytes()
    records: list[MemoryRecord] = []
    place = 0
    while place + _FRAME.size <= len(data):
        length, expected, header = _FRAME.unpack_from(data, place)
        if zlib.crc32(data[place : place + 8]) != header:
            raise CorruptState(
                f"{path}: the header of record {len(records)} was altered; "
                "restore the file or start with an empty directory"
            )
        payload = data[place + _FRAME.size : place + _FRAME.size + length]
        if len(payload) < length:
            break
        got = zlib.crc32(payload)
        if got != expected:
            raise CorruptState(
                f"{path}: record {len(records)} has checksum {got:08x}, expected {expected:08x}; "
                "restore the file or start with an empty directory"
            )
        timestamp, key, value, headers = msgpack.unpackb(payload)
        pairs = tuple((name, content) for name, content in headers)
        records.append(MemoryRecord(topic, number, len(records), timestamp, key, value, pairs))
        place += _FRAME.size + length
    if place < len(data):
        os.truncate(path, place)
    return records
