"""`neardup dead-letters`: shows records that could not be used, and sends them again."""

import asyncio
import base64
import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import aclosing
from datetime import UTC, datetime

import click

from neardup.errors import WireError
from neardup.log import Log, Output
from neardup.log.kafka import KafkaLog
from neardup.messages import dead_letters as letters
from neardup.messages.topics import Topics
from neardup.settings import Settings
from neardup.types import DeadLetter
from neardup_services.topic_reader import read_records, stop_on_signal

_BATCH = 500


@click.group("dead-letters")
def dead_letters() -> None:
    """Show records that could not be used, or send them again."""


_reason = click.option("--reason", help="Select only dead letters with this reason, such as invalid-page.")
_topic = click.option(
    "--topic", help="Select only dead letters from this topic. The last part of its name is enough, such as pages."
)


@dead_letters.command()
@_reason
@_topic
@click.option("--follow", is_flag=True, help="Continue until Ctrl-C instead of ending with the last existing letter.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object per line, with the original record in base64."
)
@click.option("--summary", "as_summary", is_flag=True, help="Print only counts by stage and reason.")
def show(reason: str | None, topic: str | None, follow: bool, as_json: bool, as_summary: bool) -> None:
    """Print the origin and the reason of each dead letter.

    \b
    Example:
      neardup dead-letters show --summary
    """
    asyncio.run(_show(Settings.load(), reason, topic, follow, as_json, as_summary))


@dead_letters.command()
@_reason
@_topic
@click.option("--dry-run", is_flag=True, help="Only print the number of records that would be sent.")
def replay(reason: str | None, topic: str | None, dry_run: bool) -> None:
    """Send dead letters again to the topics that they came from.

    Only letters that exist when the command starts are sent. A page gets a new place in the order of pages; a message
    between services goes to its original partition. A record that still cannot be used becomes a dead letter again.
    The old letters stay, because records cannot be removed from a topic.

    \b
    Example:
      neardup dead-letters replay --reason over-limit --dry-run
    """
    sent = asyncio.run(_replay(Settings.load(), reason, topic, dry_run))
    for name, count in sorted(sent.items()):
        click.echo(f"{name}: {count:,} {'would be ' if dry_run else ''}sent again")
    if not sent:
        click.echo("no dead letters match")


async def _show(
    settings: Settings, reason: str | None, topic: str | None, follow: bool, as_json: bool, as_summary: bool
) -> None:
    counts: Counter[tuple[str, str]] = Counter()
    async with KafkaLog(settings, only_reads=True) as log:
        async for letter in _chosen(log, settings, reason, topic, follow):
            counts[letter.stage, letter.reason] += 1
            if not as_summary:
                click.echo(json.dumps(_fields(letter)) if as_json else _line(letter))
    if as_summary:
        for (stage, why), count in sorted(counts.items()):
            click.echo(f"{stage}: {why}: {count:,}")
        click.echo(f"{counts.total():,} dead letters")


async def _replay(settings: Settings, reason: str | None, topic: str | None, dry_run: bool) -> Counter[str]:
    sent: Counter[str] = Counter()
    waiting: list[Output] = []
    pages = Topics.under(settings.prefix).pages
    async with KafkaLog(settings) as log:
        async for letter in _chosen(log, settings, reason, topic, follow=False):
            sent[letter.topic] += 1
            partition = None if letter.topic == pages else letter.partition
            waiting.append(Output(letter.topic, partition, letter.key, letter.value, letter.headers))
            if len(waiting) >= _BATCH and not dry_run:
                await log.send(waiting)
                waiting = []
        if waiting and not dry_run:
            await log.send(waiting)
    return sent


async def _chosen(
    log: Log, settings: Settings, reason: str | None, topic: str | None, follow: bool
) -> AsyncIterator[DeadLetter]:
    stop, name = stop_on_signal(), Topics.under(settings.prefix).dead_letters
    async with aclosing(read_records(log, name, settings.prefix, stop, follow=follow)) as found:
        async for record in found:
            try:
                letter = letters.decode(record.value)
            except WireError as error:
                click.echo(f"{name}-{record.partition} at {record.offset}: not a dead letter: {error}", err=True)
                continue
            if reason in (None, letter.reason) and topic in (None, letter.topic, letter.topic.rpartition(".")[2]):
                yield letter


def _line(letter: DeadLetter) -> str:
    when = datetime.fromtimestamp(letter.timestamp / 1000, UTC).isoformat(timespec="seconds")
    # The detail may quote the record, and its control characters must not reach the terminal.
    return f"{when} {letter.topic}-{letter.partition} at {letter.offset}: {letter.reason}: {ascii(letter.detail)[1:-1]}"


def _fields(letter: DeadLetter) -> dict[str, object]:
    return {
        "topic": letter.topic,
        "partition": letter.partition,
        "offset": letter.offset,
        "timestamp": letter.timestamp,
        "stage": letter.stage,
        "reason": letter.reason,
        "detail": letter.detail,
        "key": _text(letter.key),
        "value": _text(letter.value),
        "headers": [[name, _text(value)] for name, value in letter.headers],
    }


def _text(value: bytes | None) -> str | None:
    return None if value is None else base64.b64encode(value).decode()
