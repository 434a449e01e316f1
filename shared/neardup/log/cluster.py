"""What an operator sees of a cluster: topics, groups and their members, at one moment."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from neardup.log.contract import Partition


@dataclass(frozen=True, slots=True)
class TopicView:
    """A topic. `bounds`: of each partition, the oldest offset and the next one to be written."""

    name: str
    bounds: Mapping[Partition, tuple[int, int]]

    @property
    def records(self) -> int:
        """That the topic holds now."""
        return sum(end - first for first, end in self.bounds.values())


@dataclass(frozen=True, slots=True)
class MemberView:
    """A member of a group. Its client name tells a static member from a dynamic one: see `KafkaLog`."""

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
        """Records after the committed offset; where there is none, all of them."""
        return {each: end - max(self.committed.get(each, first), first) for each, (first, end) in topic.bounds.items()}


@dataclass(frozen=True, slots=True)
class ClusterView:
    """Topics that were asked for and do not exist are not among them."""

    topics: Mapping[str, TopicView]
    groups: Mapping[str, GroupView]
