"""The topics of a deployment with their partition counts and retention, from its settings."""

from neardup.deployment.plan import plan_of
from neardup.log import TopicSpec
from neardup.messages.topics import Topics
from neardup.settings import Settings


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
