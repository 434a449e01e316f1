"""The names of the topics, with the services that write and read each.

| topic | from → to |
|---|---|
| pages | crawler → featurizer |
| probes | featurizer → shard, one partition a slice of a table |
| inbox | featurizer, shards, owners → aggregator, one partition an owner |
| verdicts | aggregator → crawler |
| canaries | aggregator → operator: verdicts on pages that were planted |
| documents | aggregator → recluster |
| clusters | recluster → whoever asks, the last word on each url |
| dead-letters | everyone → operator |
"""

from dataclasses import dataclass
from typing import Final

_INNER: Final = ("probes", "inbox")
"""Topics whose partitions are those of the plan and of the owners."""


@dataclass(frozen=True, slots=True)
class Topics:
    """Names of the topics under a prefix."""

    pages: str
    probes: str
    inbox: str
    verdicts: str
    canaries: str
    documents: str
    clusters: str
    dead_letters: str

    @classmethod
    def under(cls, prefix: str, generation: int = 0) -> "Topics":
        """The names for a deployment. Only what is between services is made anew by a resharding."""
        names = ("pages", "probes", "inbox", "verdicts", "canaries", "documents", "clusters", "dead-letters")
        inner = prefix_of_generation(prefix, generation)
        return cls(*(f"{inner if name in _INNER else prefix}.{name}" for name in names))


def prefix_of_generation(prefix: str, generation: int) -> str:
    """First part of the names of what belongs to one generation of a deployment: it is resharded into the next."""
    return f"{prefix}.{generation}" if generation else prefix
