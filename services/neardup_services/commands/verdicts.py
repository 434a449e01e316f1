"""`neardup verdicts`: what the crawler is told, on the screen."""

import asyncio
from collections import Counter
from contextlib import aclosing

import click

from neardup.log.kafka import KafkaLog
from neardup.settings import Settings
from neardup.topics import Topics
from neardup.types import Kind
from neardup.verdict import read_verdict
from neardup_services.looking import records, stop_by_signal


@click.command()
@click.option("--follow", is_flag=True, help="Go on until Ctrl-C; else end with the last verdict there is now.")
@click.option("--new", is_flag=True, help="Only those from now on; implies --follow.")
@click.option("--count", type=click.IntRange(1), help="End when so many documents have a verdict; implies --follow.")
@click.option("--summary", "as_summary", is_flag=True, help="Counts at the end instead of the verdicts.")
@click.option("--canaries", is_flag=True, help="Those on planted near-copies instead: `reason` says of which page.")
def verdicts(follow: bool, new: bool, count: int | None, as_summary: bool, canaries: bool) -> None:
    """Print the verdicts, one JSON object a line. A later line for the same document replaces an earlier one."""
    look = Look(count, as_summary, canaries)
    asyncio.run(look.run(Settings.load(), new=new, follow=follow or new or count is not None))
    if as_summary:
        click.echo(look.summary())


class Look:
    """Reads verdicts until told to stop."""

    def __init__(self, most: int | None, quiet: bool, canaries: bool = False) -> None:
        self._most = most
        self._quiet = quiet
        self._canaries = canaries
        self._last: dict[str, Kind] = {}
        self._told: list[int] = []

    async def run(self, settings: Settings, *, new: bool, follow: bool) -> None:
        """Ends with SIGINT or SIGTERM, with enough documents, or, unless it follows, with the last verdict."""
        stop, topics = stop_by_signal(), Topics.under(settings.prefix)
        topic = topics.canaries if self._canaries else topics.verdicts
        async with (
            KafkaLog(settings, only_reads=True) as log,
            aclosing(records(log, topic, settings.prefix, stop, new=new, follow=follow)) as found,
        ):
            async for record in found:
                self._show(record.value or b"", record.timestamp)
                if self._most is not None and len(self._last) >= self._most:
                    break

    def summary(self) -> str:
        """Counts by last verdict, and the rate at which verdicts were told."""
        kinds = Counter(self._last.values())
        listed = ", ".join(f"{kinds[kind]:,} {kind}" for kind in Kind)
        seconds = (max(self._told) - min(self._told)) / 1000 if self._told else 0.0
        rate = f"; {len(self._told) / seconds:,.0f} verdicts a second" if seconds else ""
        return f"{len(self._last):,} documents: {listed}{rate}"

    def _show(self, value: bytes, timestamp: int) -> None:
        verdict = read_verdict(value)
        self._told.append(timestamp)
        self._last[verdict.document] = verdict.verdict
        if not self._quiet:
            click.echo(value)
