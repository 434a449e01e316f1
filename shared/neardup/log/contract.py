"""The interface of a log, and the guarantees of every implementation.

A log has topics, a topic has partitions, and a partition is a sequence of records with rising offsets. Stages and the
runner rely on these guarantees, each of which has a test in the contract suite:

- records of a partition are read in the order in which they were acknowledged;
- an output with an explicit partition is written to that partition; without one, its key determines the partition,
  and equal keys have the same partition;
- `send` returns only when every output is acknowledged, and outputs of one call to one partition keep their order;
- a partition belongs to at most one *live* member of a group at a time; the listener of a member that loses a
  partition is called before the member gets new ones, unless the member missed its heartbeats and was declared dead;
- reading starts at the offset to which the listener seeked, or else at the committed offset, or else at the oldest
  record.

The interface deliberately has no transactions (repeated outputs are harmless), no timestamps set by stages, and no
topic creation on first use.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, Self


class Partition(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class Record(Protocol):
    """A record as read. It is a protocol, so that records of the Kafka client can be used without a copy."""

    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def timestamp(self) -> int:
        """Milliseconds since the epoch, set by the log or by the first producer."""

    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...
    @property
    def headers(self) -> Sequence[tuple[str, bytes]]: ...


class PlainRecord(NamedTuple):
    """A record as a plain tuple: records of the in-process log, copies for another process, and records in tests."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes]]


class Output(NamedTuple):
    """A record to be written. If `partition` is None, the key determines the partition."""

    topic: str
    partition: int | None
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes]] = ()


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """Specification of a topic."""

    name: str
    partitions: int
    replication: int = 1
    configs: Mapping[str, str] = field(default_factory=dict)


class Listener(ABC):
    """Receives the assignments of a member. Its methods may be called from another task than the one that polls.

    `poll` returns no record of a partition before `assigned` has returned for it, and none after `revoked` was called.
    An exception in either method is fatal for the consumer: the next `poll` raises it.
    """

    @abstractmethod
    async def assigned(self, consumer: "Consumer", partitions: Collection[Partition]) -> None:
        """Take over partitions. May seek. May block for as long as a rebalance may take."""

    @abstractmethod
    async def revoked(self, consumer: "Consumer", partitions: Collection[Partition]) -> None:
        """Give up partitions, which the member loses when this returns. May still commit their offsets."""


class Consumer(ABC):
    """One member of a group that reads one topic.

    `poll` and `seek` must be called from one task. The other methods may be called from other tasks at the same time.
    """

    @abstractmethod
    async def poll(
        self, partitions: Collection[Partition], *, timeout: float, max_records: int
    ) -> Mapping[Partition, Sequence[Record]]:
        """Return the next records of the given partitions. Partitions that are not assigned are ignored.

        Blocks for about `timeout` seconds at most, or longer during a rebalance. Returns the available records, at most
        `max_records` in total. Records of other partitions stay in the log, which is the back-pressure. The group
        declares a member dead that does not poll for minutes. Raises LogError.
        """

    @abstractmethod
    def seek(self, partition: Partition, offset: int) -> None:
        """Read an assigned partition from this offset. A later `poll` raises LogGap if the offset does not exist."""

    @abstractmethod
    async def commit(self, offsets: Mapping[Partition, int]) -> None:
        """Commit the offsets at which the group resumes. Raises LogError if a partition is no longer assigned."""

    @abstractmethod
    async def committed(self, partition: Partition) -> int | None:
        """Return the committed offset of the group, or None."""

    @abstractmethod
    async def bounds(self, partitions: Collection[Partition]) -> Mapping[Partition, tuple[int, int]]:
        """Return (oldest offset, next offset to be written) of each partition, whether it is assigned or not.

        Every call queries the log and never a cache, so a result proves that the log can be reached. Waits while the
        log cannot be reached, and raises LogError when a request times out. May be called while `poll` runs.
        """

    @abstractmethod
    async def close(self) -> None:
        """Leave the group. Calls `revoked` for the partitions that are still assigned.

        Returns within seconds after `revoked`, even if the log does not answer.
        """


class Log(ABC):
    """A store of records. `async with` starts and stops it."""

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    @abstractmethod
    async def start(self) -> None:
        """Connect. Raises BrokerUnreachable."""

    @abstractmethod
    async def stop(self) -> None:
        """Wait for outputs in flight, then disconnect. Consumers must be closed by the code that opened them."""

    @abstractmethod
    async def send(self, outputs: Sequence[Output]) -> None:
        """Write outputs and return when all are acknowledged. Raises SendFailed, after which some may be written.

        Blocks while too much is in flight. Calls may overlap. The order is kept only within a call and between calls
        that do not overlap.
        """

    @abstractmethod
    async def consumer(
        self, topic: str, group: str, listener: Listener, *, instance: str = "", patience: float = 0.0
    ) -> Consumer:
        """Join a group.

        `instance` identifies a static member, which keeps its partitions over a restart if the log supports that.
        `patience` is the maximum time in seconds for which records may be delayed to return more of them together.
        """

    @abstractmethod
    async def partitions(self, topic: str) -> int:
        """Return the number of partitions of a topic. Raises TopicMismatch if the topic does not exist."""

    @abstractmethod
    async def create_topics(self, specs: Sequence[TopicSpec]) -> dict[str, str]:
        """Create missing topics. Existing topics are not changed.

        Returns for each topic "created", "exists", or the differences of the existing one.
        """
