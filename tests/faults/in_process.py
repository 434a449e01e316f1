"""All services in this process on a log that survives restarts, so that state can be damaged in between."""

import asyncio
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

from neardup.deployment.deployment import SERVICES, Deployment, make_runner
from neardup.deployment.topics import topic_specs
from neardup.log import Output, Partition
from neardup.log.memory import MemoryLog
from neardup.messages.pages import write_page
from neardup.messages.topics import Topics
from neardup.messages.verdicts import read_verdict
from neardup.settings import Settings
from neardup.types import Page, Verdict

_ALL = 1 << 40
_QUIET_SECONDS = 0.3
"""Seconds without output after the last page's verdict: revisions may follow it."""


class Stream:
    """A stream to which pages are sent one by one, so that their order is fixed."""

    def __init__(self, state: Path) -> None:
        self.settings = Settings(
            prefix="bad",
            state=state,
            page_partitions=1,
            verdict_partitions=1,
            checkpoint_seconds=0.1,
            corpus_seconds=0,
            threads=2,
        )
        self.topics = Topics.under(self.settings.prefix)
        self._deployment = Deployment(self.settings)
        self._now = 0.0
        self._log = MemoryLog(clock=lambda: self._now or time.time())

    async def take(self, pages: Sequence[Page]) -> list[Verdict]:
        """Start every service, send the pages, wait until the output ends, and stop.

        Returns the last verdict on every page so far. Raises the error that stopped a service.
        """
        await self._log.create_topics(topic_specs(self.settings))
        runners = [make_runner(name, self.settings, self._log, self._deployment) for name in SERVICES]
        running = [asyncio.create_task(runner.run()) for runner in runners]
        try:
            for page in pages:
                await self._log.send([Output(self.topics.pages, 0, None, write_page(page))])
            await self._settled(running)
        finally:
            for runner in runners:
                runner.stop()
            ended = await asyncio.gather(*running, return_exceptions=True)
        for error in ended:
            if error is not None:
                raise error
        return [verdict for _, verdict in sorted(self._last().items())]

    async def copy_to(self, state: Path) -> "Stream":
        """Return an independent copy of the state and of the log."""
        shutil.copytree(self.settings.state, state)
        other = Stream(state)
        await other._log.create_topics(topic_specs(other.settings))
        for spec in topic_specs(self.settings):
            for number in range(spec.partitions):
                for record in self._log.read(Partition(spec.name, number), 0, _ALL):
                    other._now = (record.timestamp + 0.5) / 1000
                    await other._log.send([Output(spec.name, number, record.key, record.value)])
        other._now = 0.0
        return other

    async def _settled(self, running: "list[asyncio.Task[None]]") -> None:
        """Wait until every page has a verdict and there was no output for a while, or until a service has ended."""
        total, ends, quiet_since = self._log.end(Partition(self.topics.pages, 0)), [0], time.monotonic()
        async with asyncio.timeout(60):
            while len(self._last()) < total or time.monotonic() - quiet_since < _QUIET_SECONDS:
                if any(task.done() for task in running):
                    return
                now = [
                    self._log.end(Partition(s.name, n)) for s in topic_specs(self.settings) for n in range(s.partitions)
                ]
                if now != ends:
                    ends, quiet_since = now, time.monotonic()
                await asyncio.sleep(0.05)

    def _last(self) -> dict[int, Verdict]:
        last: dict[int, Verdict] = {}
        for record in self._log.read(Partition(self.topics.verdicts, 0), 0, _ALL):
            verdict = read_verdict(record.value or b"")
            number = int(verdict.document.partition(":")[2])
            if number not in last or last[number].revision <= verdict.revision:
                last[number] = verdict
        return last
