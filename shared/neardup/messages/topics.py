"""The names of the topics, with the services that write and read each.

| topic | from → to |
|---|---|
| pages | crawler → featurizer |
| probes | featurizer → shard, one partition per slice of a table |
| inbox | featurizer, shards, owners → aggregator, one partition per owner |
| verdicts | aggregator → crawler |
| canaries | aggregator → operator: verdicts on planted pages |
| documents | aggregator → recluster |
| clusters | recluster → any consumer: the current cluster of each URL |
| dead-letters | all services → operator |
"""

from dataclasses import dataclass
from typing import Final

_INNER: Final = ("probes", "inbox")
"""Topics between services: `probes` has one partition per shard partition of the plan, `inbox` one per owner."""


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
        """Return the names for a deployment. A resharding replaces only the topics between services."""
        names = ("pages", "probes", "inbox", "verdicts", "canaries", "documents", "clusters", "dead-letters")
        inner = prefix_of_generation(prefix, generation)
        return cls(*(f"{inner if name in _INNER else prefix}.{name}" for name in names))


def prefix_of_generation(prefix: str, generation: int) -> str:
    """Return the first part of the topic names of a generation. Each resharding creates the next generation."""
    return f"{prefix}.{generation}" if generation else prefix
