"""`neardup verdicts`: what the crawler is told, on the screen."""

import asyncio
import signal
import uuid
from collections import Counter
from collections.abc import Collection

import click

from neardup.log import Consumer, Listener, Partition
from neardup.log.kafka import KafkaLog
from neardup.settings import Settings
from neardup.topics import Topics
from neardup.types import Kind
from neardup.verdict import read_verdict


@click.command()
@click.option("--follow", is_flag=True, help="Go on until Ctrl-C; else end with the last verdict there is now.")
@click.option("--new", is_flag=True, help="Only those from now on; implies --follow.")
@click.option("--count", type=click.IntRange(1), help="End when so many documents have a verdict; implies --follow.")
@click.option("--summary", "as_summary", is_flag=True, help="Counts at the end instead of the verdicts.")
def verdicts(follow: bool, new: bool, count: int | None, as_summary: bool) -> None:
    """Print the verdicts, one JSON object a line. A later line for the same document replaces an earlier one."""
    look = Look(count, as_summary)
    asyncio.run(look.run(Settings.load(), _Start(new), follow=follow or new or count is not None))
    if as_summary:
        click.echo(look.summary())


class Look:
    """Reads verdicts until told to stop."""

    def __init__(self, most: int | None, quiet: bool) -> None:
        self._most = most
        self._quiet = quiet
        self._last: dict[str, Kind] = {}
        self._told: list[int] = []

    async def run(self, settings: Settings, start: "_Start", *, follow: bool) -> None:
        """Ends with SIGINT or SIGTERM, with enough documents, or, unless it follows, with the last verdict."""
        stop = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        async with KafkaLog(settings) as log:
            # A group of its own that commits nothing: looking changes nothing.
            group = f"{settings.prefix}.look-{uuid.uuid4().hex[:8]}"
            consumer = await log.consumer(Topics.under(settings.prefix).verdicts, group, start)
            try:
                while not stop.is_set() and (follow or not start.reached):
                    found = await consumer.poll(start.mine, timeout=0.2, max_records=5000)
                    for partition, records in found.items():
                        for record in records:
                            self._show(record.value or b"", record.timestamp)
                        start.positions[partition] = records[-1].offset + 1
                    if self._most is not None and len(self._last) >= self._most:
                        break
            finally:
                await consumer.close()

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


class _Start(Listener):
    """Reads from the oldest verdict, or from the next one; knows where the last one was at the start."""

    def __init__(self, new: bool) -> None:
        self.mine: list[Partition] = []
        self.positions: dict[Partition, int] = {}
        self._new = new
        self._ends: dict[Partition, int] = {}

    @property
    def reached(self) -> bool:
        """Whether everything that was there at the start has been read."""
        return bool(self._ends) and all(self.positions[each] >= end for each, end in self._ends.items())

    async def assigned(self, consumer: Consumer, partitions: Collection[Partition]) -> None:
        """Go to the start."""
        for partition, (first, end) in (await consumer.bounds(partitions)).items():
            self.positions[partition] = end if self._new else first
            self._ends[partition] = end
            consumer.seek(partition, self.positions[partition])
        self.mine = list(partitions)

    async def revoked(self, consumer: Consumer, partitions: Collection[Partition]) -> None:
        """Nothing to save."""
        self.mine = []
