"""The topics, their partition counts and how long they are kept.

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

from neardup.deployment.planning import plan_of
from neardup.log import TopicSpec
from neardup.settings import Settings

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


def topic_specs(settings: Settings) -> list[TopicSpec]:
    """Every topic as it should be. Raises SettingsError when the settings make no plan."""
    plan = plan_of(settings)
    names = Topics.under(settings.prefix, settings.generation)
    kept = {"retention.ms": str(settings.page_retention_hours * 3_600_000)}
    # State is a cache of probes and inbox: what is removed there cannot be rebuilt.
    forever = {"retention.ms": "-1", "max.message.bytes": str(2 * 2**20)}
    pages = {**kept, "max.message.bytes": str(settings.max_message_bytes)}
    letters = {**kept, "max.message.bytes": str(settings.max_message_bytes + 2**20)}
    return [
        TopicSpec(names.pages, settings.page_partitions, settings.replication, pages),
        TopicSpec(names.probes, plan.partitions, settings.replication, forever),
        TopicSpec(names.inbox, settings.owners, settings.replication, forever),
        TopicSpec(names.verdicts, settings.verdict_partitions, settings.replication, kept),
        TopicSpec(names.canaries, 1, settings.replication, kept),
        TopicSpec(names.documents, settings.verdict_partitions, settings.replication, forever),
        TopicSpec(names.clusters, settings.verdict_partitions, settings.replication, {"cleanup.policy": "compact"}),
        TopicSpec(names.dead_letters, 1, settings.replication, letters),
    ]
