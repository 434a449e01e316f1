"""What a log is: the words, and what every implementation guarantees.

A log has topics; a topic has partitions; a partition is a sequence of records with rising offsets. The
guarantees that stages and the runner lean on, each held by a test in the contract suite:

- records of a partition are read in the order in which they were acknowledged;
- an output with an explicit partition goes there and nowhere else; one without is placed by its key, the same
  key always in the same partition;
- `send` returns only when every output is acknowledged, and outputs of one call to one partition keep
  their order;
- a partition belongs to at most one *live* member of a group at a time; a member that lost one hears of it through
  its listener before it is given new ones, unless it was declared dead (it was silent for too long);
- reading starts where the listener seeked to, else at the committed offset, else at the oldest record.

Deliberately absent: transactions (repeats are harmless here), timestamps set by the producer of a stage,
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
    """A record as read. A protocol, so that a Kafka client's own record serves without being copied."""

    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def timestamp(self) -> int:
        """Milliseconds since the epoch, given by the log or the first producer."""

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
    """A record to be written. `partition` None means: by key."""

    topic: str
    partition: int | None
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes]] = ()


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """A topic as it should be."""

    name: str
    partitions: int
    replication: int = 1
    configs: Mapping[str, str] = field(default_factory=dict)


class Listener(ABC):
    """Told about a member's partitions. Both calls may come from another task than the one that polls.

    No record of a partition is returned by `poll` before `assigned` for it has returned, nor after `revoked` was
    called. An exception from either is fatal for the consumer: the next `poll` raises it.
    """

    @abstractmethod
    async def assigned(self, consumer: "Consumer", partitions: Collection[Partition]) -> None:
        """These are mine now. May seek. May block for as long as a rebalance may take."""

    @abstractmethod
    async def revoked(self, consumer: "Consumer", partitions: Collection[Partition]) -> None:
        """These are no longer mine when this returns. May still commit their offsets."""


class Consumer(ABC):
    """One member of a group, reading one topic.

    `poll` and `seek` are for one task. The other methods are safe to call from other tasks meanwhile.
    """

    @abstractmethod
    async def poll(
        self, partitions: Collection[Partition], *, timeout: float, max_records: int
    ) -> Mapping[Partition, Sequence[Record]]:
        """The next records of the given partitions, those not assigned are passed over.

        Blocks for about `timeout` seconds at most, longer while a rebalance is under way; returns what there is,
        at most `max_records` in all. Partitions not asked for keep their records: this is the back-pressure. A member
        that does not call for minutes is taken for dead by its group. Raises LogError.
        """

    @abstractmethod
    def seek(self, partition: Partition, offset: int) -> None:
        """Read this assigned partition from here on. A later `poll` raises LogGap if that is gone."""

    @abstractmethod
    async def commit(self, offsets: Mapping[Partition, int]) -> None:
        """Make these the offsets where the group goes on. Raises LogError if they are not mine any more."""

    @abstractmethod
    async def committed(self, partition: Partition) -> int | None:
        """Where the group goes on, or None."""

    @abstractmethod
    async def bounds(self, partitions: Collection[Partition]) -> Mapping[Partition, tuple[int, int]]:
        """Return (oldest offset, next offset to be written) of each partition, whether it is assigned or not.

        Queries the log on every call, never a cache, so that an answer proves that the log can be reached. Waits while
        the log cannot be reached; raises LogError when a request times out. Safe to call while `poll` runs.
        """

    @abstractmethod
    async def close(self) -> None:
        """Leave the group; `revoked` is called for what is still assigned."""


class Log(ABC):
    """Where records live. `async with` starts and stops it."""

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
        """Wait for what is being sent, then disconnect. Consumers are closed by whoever opened them."""

    @abstractmethod
    async def send(self, outputs: Sequence[Output]) -> None:
        """Write outputs; return when all are acknowledged. Raises SendFailed, after which some may be written.

        Blocks while too much is in flight. Calls may overlap; order is only kept within a call and between calls
        that do not overlap.
        """

    @abstractmethod
    async def consumer(
        self, topic: str, group: str, listener: Listener, *, instance: str = "", patience: float = 0.0
    ) -> Consumer:
        """Join a group. `instance` keeps the member's place over restarts where the log knows how to.

        `patience`: records may be held back for so many seconds so that more of them come at once.
        """

    @abstractmethod
    async def partitions(self, topic: str) -> int:
        """How many partitions a topic has. Raises TopicMismatch if it does not exist."""

    @abstractmethod
    async def create_topics(self, specs: Sequence[TopicSpec]) -> dict[str, str]:
        """Create what is missing, touch nothing that exists.

        Says for each topic: "created", "exists", or how the existing one differs.
        """
