"""The topics of a deployment with their partition counts and retention, from its settings."""

from neardup.deployment.plan import plan_of
from neardup.log import TopicSpec
from neardup.messages.topics import Topics
from neardup.settings import Settings


def topic_specs(settings: Settings) -> list[TopicSpec]:
    """Return the specification of every topic. Raises SettingsError if the settings have no valid plan."""
    plan = plan_of(settings)
    names = Topics.under(settings.prefix, settings.generation)
    kept = {"retention.ms": str(settings.page_retention_hours * 3_600_000)}
    # The state is rebuilt from probes and inbox, so these topics must keep all records.
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
