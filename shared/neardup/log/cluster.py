"""Snapshot of a cluster for operators: topics, groups and their members at one moment."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from neardup.log.contract import Partition


@dataclass(frozen=True, slots=True)
class TopicView:
    """A topic. `bounds` has the oldest offset and the next offset to be written of each partition."""

    name: str
    bounds: Mapping[Partition, tuple[int, int]]

    @property
    def records(self) -> int:
        """The number of records in the topic."""
        return sum(end - first for first, end in self.bounds.values())


@dataclass(frozen=True, slots=True)
class MemberView:
    """A member of a group. Static and dynamic members differ in their client names (see `connection`)."""

    client: str
    host: str
    partitions: int


@dataclass(frozen=True, slots=True)
class GroupView:
    """A group. `committed` has no entry for a partition that was never committed."""

    name: str
    state: str
    members: tuple[MemberView, ...] = ()
    committed: Mapping[Partition, int] = field(default_factory=dict)

    def lag(self, topic: TopicView) -> dict[Partition, int]:
        """Return the number of records after the committed offset of each partition, or of all records without one."""
        return {each: end - max(self.committed.get(each, first), first) for each, (first, end) in topic.bounds.items()}


@dataclass(frozen=True, slots=True)
class ClusterView:
    """A cluster. It contains only topics that exist."""

    topics: Mapping[str, TopicView]
    groups: Mapping[str, GroupView]
