"""The topics, their partition counts and how long they are kept.

| topic | from → to |
|---|---|
| pages | crawler → featurizer |
| inbox | featurizer → aggregator, one partition an owner |
| verdicts | aggregator → crawler |
| dead-letters | everyone → operator |
"""

from dataclasses import dataclass

from neardup.log import TopicSpec
from neardup.settings import Settings


@dataclass(frozen=True, slots=True)
class Topics:
    """Names of the topics under a prefix."""

    pages: str
    inbox: str
    verdicts: str
    dead_letters: str

    @classmethod
    def under(cls, prefix: str) -> "Topics":
        """The names for a deployment."""
        return cls(f"{prefix}.pages", f"{prefix}.inbox", f"{prefix}.verdicts", f"{prefix}.dead-letters")


def topic_specs(settings: Settings) -> list[TopicSpec]:
    """Every topic as it should be."""
    names = Topics.under(settings.prefix)
    kept = {"retention.ms": str(settings.page_retention_hours * 3_600_000)}
    # State is a cache of the inbox: what is removed there cannot be rebuilt.
    forever = {"retention.ms": "-1", "max.message.bytes": str(2 * 2**20)}
    pages = {**kept, "max.message.bytes": str(settings.max_message_bytes)}
    letters = {**kept, "max.message.bytes": str(settings.max_message_bytes + 2**20)}
    return [
        TopicSpec(names.pages, settings.page_partitions, settings.replication, pages),
        TopicSpec(names.inbox, settings.owners, settings.replication, forever),
        TopicSpec(names.verdicts, settings.verdict_partitions, settings.replication, kept),
        TopicSpec(names.dead_letters, 1, settings.replication, letters),
    ]
