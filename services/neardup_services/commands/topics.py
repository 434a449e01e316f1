"""`neardup topics`: creates the Kafka topics."""

import asyncio
import sys

import click

from neardup.deployment.topics import topic_specs
from neardup.log.kafka import KafkaLog
from neardup.messages.topics import Topics
from neardup.settings import Settings


@click.group()
def topics() -> None:
    """Create the Kafka topics."""


@topics.command()
def create() -> None:
    """Create the topics that are missing, and report how existing topics differ from the settings.

    The command can be repeated: it never changes an existing topic. For a deployment that was resharded, it does not
    create the probes and inbox topics, which `neardup reshard` has created.

    Exit code 1: a topic differs from the settings.

    \b
    Example:
      neardup topics create
    """
    states = asyncio.run(_create(Settings.load()))
    for name, state in states.items():
        click.echo(f"{name}: {state}")
    if any(state not in ("created", "exists") for state in states.values()):
        sys.exit(1)


async def _create(settings: Settings) -> dict[str, str]:
    names, specs = Topics.under(settings.prefix, settings.generation), topic_specs(settings)
    if settings.generation:
        # The resharding filled these topics with the state of the deployment; topics created here would be empty.
        specs = [spec for spec in specs if spec.name not in (names.probes, names.inbox)]
    return await KafkaLog(settings).create_topics(specs)
