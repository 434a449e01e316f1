"""`neardup verdicts`: prints the verdicts topic."""

import asyncio
from contextlib import aclosing

import click

from neardup.log.kafka import KafkaLog
from neardup.messages.topics import Topics
from neardup.messages.verdicts import read_verdict
from neardup.settings import Settings
from neardup_services.topic_reader import read_records, stop_on_signal
from neardup_services.verdict_counts import VerdictCounts


@click.command()
@click.option("--follow", is_flag=True, help="Continue until Ctrl-C instead of ending with the last existing verdict.")
@click.option("--new", is_flag=True, help="Print only verdicts that are emitted from now on; implies --follow.")
@click.option(
    "--count", type=click.IntRange(1), help="Number of documents with a verdict after which to end; implies --follow."
)
@click.option("--summary", "as_summary", is_flag=True, help="Print counts at the end instead of the verdicts.")
@click.option(
    "--canaries", is_flag=True, help="Print the verdicts on canaries instead; `reason` names the page that was copied."
)
def verdicts(follow: bool, new: bool, count: int | None, as_summary: bool, canaries: bool) -> None:
    """Print the verdicts, one JSON object per line.

    A later line for the same document replaces an earlier one.

    \b
    Example:
      neardup verdicts --follow
    """
    counts = VerdictCounts()
    follow = follow or new or count is not None
    asyncio.run(_print(Settings.load(), counts, new, follow, count, as_summary, canaries))
    if as_summary:
        click.echo(counts.summary())


async def _print(
    settings: Settings,
    counts: VerdictCounts,
    new: bool,
    follow: bool,
    most: int | None,
    quiet: bool,
    canaries: bool,
) -> None:
    """Print verdicts until SIGINT or SIGTERM, until `most` documents or, without `follow`, until the last one."""
    topics = Topics.under(settings.prefix)
    topic = topics.canaries if canaries else topics.verdicts
    async with (
        KafkaLog(settings, only_reads=True) as log,
        # Signals are handled from here on: one that arrives during the connection ends the command.
        aclosing(read_records(log, topic, settings.prefix, stop_on_signal(), new=new, follow=follow)) as found,
    ):
        async for record in found:
            counts.add(read_verdict(record.value or b""), record.timestamp)
            if not quiet:
                click.echo(record.value)
            if most is not None and len(counts.last) >= most:
                break
