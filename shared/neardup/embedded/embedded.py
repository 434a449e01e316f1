"""The whole stream in one process: every service over the in-process log, without a broker.

The next run resumes from the state directory:

    <state>/lock               held while the directory is in use
    <state>/embedded.json      number of pages, settings, and notes of the caller
    <state>/outputs.json       output files of `neardup dedup`, written by that command
    <state>/folders/           files that `neardup dedup` has processed, written by that command
    <state>/<partition>/       state of each stage
    <state>/corpus/            judged documents, for the offline pass

Pages are numbered over all runs, and the number of a page is its offset, so a page that is fed again has the same id.
`save` makes the state durable: it waits until all work is done, records that it is saving, checkpoints every stage, and
records that it has finished. After a crash, the pages since the last finished save must be fed again. If the crash
interrupted a save, stages that had already written their checkpoint receive these pages twice, which is harmless as
long as the pages are the same (`Progress.saving`). All pages of a run have the same timestamp, so they are ordered by
their numbers.
"""

import asyncio
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Self

from neardup.deployment.deployment import SERVICES, Deployment, make_runner
from neardup.deployment.topics import topic_specs
from neardup.embedded.state_lock import StateLock
from neardup.errors import CorruptState, NeardupError, WrongState
from neardup.log import Output, Partition
from neardup.log.memory import MemoryLog
from neardup.messages.orders import Expire, Forget, orders
from neardup.messages.pages import write_page
from neardup.runtime.runner import Phase
from neardup.settings import Settings
from neardup.types import Page
from neardup.util.atomic_file import write_text

FILE: Final = "embedded.json"
VERSION: Final = 1
_OFFSETS_PER_LIFE: Final = 1 << 40
"""Number of offsets per life. Each run (a life) starts its internal topics above all offsets of earlier runs."""
_MAX_IN_FLIGHT: Final = 4000
"""Maximum number of pages that wait for the featurizer."""
_POLL_SECONDS: Final = 0.02
_SHORTEST_POLL_SECONDS: Final = 0.0005
_NEVER_SECONDS: Final = 86_400.0


Notes = Mapping[str, int]
"""Values that the caller passes to `save` and receives in the next run, such as the items read from each input."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The content of embedded.json. `saving` has the notes of an unfinished save; some stages may have reached it."""

    plan: str
    life: int = 0
    pages: int = 0
    timestamp: int = 0
    clean: bool = True
    generation: int = 0
    notes: Notes | None = None
    saving: Notes | None = None


def read_progress(state: Path) -> Progress | None:
    """Read embedded.json. Return None if it does not exist. Raises CorruptState, or WrongState for another version."""
    path = state / FILE
    if not path.exists():
        return None
    try:
        body = json.loads(path.read_text())
        version = body.pop("version")
        found = Progress(**body)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CorruptState(
            f"{path}: expected the progress of an embedded run, got: {error!r}; delete the state directory and feed "
            "all pages again"
        ) from error
    if version != VERSION:
        raise WrongState(f"{path}: expected version {VERSION}, got {version!r}: use the release that wrote it")
    return found


def write_progress(state: Path, progress: Progress) -> None:
    """Replace embedded.json durably and atomically."""
    values = {name: getattr(progress, name) for name in Progress.__slots__}
    write_text(state / FILE, json.dumps({"version": VERSION, **values}))


def require_plan(state: Path, progress: Progress, plan: str) -> None:
    """Raise WrongState unless the state was made with this plan."""
    if progress.plan != plan:
        raise WrongState(
            f"{state / FILE}: expected plan {plan}, got {progress.plan}: use the settings that the state was made "
            "with, or another directory"
        )


def embedded_settings(settings: Settings, state: Path, generation: int) -> Settings:
    """Return the settings of a run in one process."""
    # One partition of pages, so that the order of pages is the order in which they are fed. Its featurizer uses all
    # cores. One owner, so that no questions are sent between owners.
    return replace(
        settings,
        state=state,
        corpus="",
        page_partitions=1,
        verdict_partitions=1,
        owners=1,
        generation=generation,
        processes=settings.processes or os.cpu_count() or 1,
        checkpoint_seconds=_NEVER_SECONDS,
        checkpoint_records=10**12,
        checkpoint_bytes=10**12,
        corpus_seconds=0.0,
        # The metrics of a run in one process are not scraped.
        shadow_share=0.0,
    )


class Embedded:
    """All stages in one process. Use as `async with Embedded(...) as stream`, from one task.

    Errors of stages are raised again. `on_verdict` is called with every verdict as bytes in the configured format, in
    the order of creation; `on_dead_letter` is called with every dead letter. Entering raises StateInUse if the
    directory is in use. A caller that already holds the lock of the directory passes it as `lock`, and releases it
    afterwards.
    """

    def __init__(
        self,
        state: Path,
        settings: Settings,
        *,
        on_verdict: Callable[[bytes], None],
        on_dead_letter: Callable[[bytes], None] = lambda letter: None,
        clock: Callable[[], float] = time.time,
        lock: StateLock | None = None,
    ) -> None:
        self._given_settings = settings
        self._state = state
        self._on_verdict = on_verdict
        self._on_dead_letter = on_dead_letter
        self._clock = clock
        self._lock = StateLock(state) if lock is None else nullcontext()
        self._held = ExitStack()
        self._log: MemoryLog
        self._first: dict[str, int] = {}
        self._read: dict[str, int] = {}
        self.progress: Progress

    async def __aenter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(self._lock)
            await self._start()
            self._held = stack.pop_all()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        with self._held:
            await self._end()

    async def _start(self) -> None:
        # Read under the lock: resharding changes the generation.
        found = read_progress(self._state)
        self._settings = embedded_settings(self._given_settings, self._state, found.generation if found else 0)
        self._deployment = Deployment(self._settings)
        self._topics = topics = self._deployment.topics
        plan = self._deployment.plan.digest
        if found is not None:
            require_plan(self._state, found, plan)
        before = found or Progress(plan=plan)
        now = int(self._clock() * 1000)
        # Pages that are fed again after a crash must keep their timestamp.
        timestamp = max(now, before.timestamp) if before.clean else before.timestamp
        self.progress = replace(before, life=before.life + 1, timestamp=timestamp, clean=False)
        self._write()
        life = self.progress.life * _OFFSETS_PER_LIFE
        self._first = {topics.pages: self.progress.pages} | dict.fromkeys(
            (topics.probes, topics.inbox, topics.documents), life
        )
        self._log = MemoryLog(self._first, clock=lambda: self.progress.timestamp / 1000)
        await self._log.create_topics(topic_specs(self._settings))
        self._runners = [
            make_runner(name, self._settings, self._log, self._deployment)
            for name, spec in SERVICES.items()
            if spec.is_needed
        ]
        self._running = [asyncio.create_task(runner.run()) for runner in self._runners]
        try:
            while any(runner.not_ready() for runner in self._runners):
                await self._poll()
        except BaseException:
            await self._end()
            raise

    async def _end(self) -> None:
        for runner in self._runners:
            # Unsaved state must not become durable: the next run may assign these numbers to other pages.
            if self.progress.clean:
                runner.stop()
            else:
                runner.abandon()
        await asyncio.gather(*self._running, return_exceptions=True)
        await asyncio.to_thread(self._deployment.page_pool.close)

    @property
    def page_count(self) -> int:
        """Number of pages fed in all runs, which is also the number of the next page."""
        return self._log.end(Partition(self._topics.pages, 0))

    async def feed(self, pages: Sequence[Page]) -> None:
        """Add pages. Waits while too many pages are in flight."""
        pages_topic = Partition(self._topics.pages, 0)
        await self._log.send([Output(self._topics.pages, 0, None, write_page(page)) for page in pages])
        featurizer = self._runners[0]
        while (
            self.page_count - max(featurizer.done().get(pages_topic, 0), self._first[self._topics.pages])
            > _MAX_IN_FLIGHT
        ):
            await self._poll()

    async def drain(self) -> None:
        """Wait until every page has its last verdict."""
        pause = _SHORTEST_POLL_SECONDS
        while not self._is_idle():
            await self._poll(pause)
            # A single page takes one or two milliseconds, a large batch takes longer.
            pause = min(pause * 1.5, _POLL_SECONDS)
        self._deliver()

    async def save(self, notes: Notes | None = None) -> None:
        """Drain the stream and make everything durable, with `notes` for `progress.notes`."""
        await self.drain()
        # The caller may change its mapping later, but the notes of this save are written once more by the next one.
        notes = None if notes is None else dict(notes)
        self.progress = replace(self.progress, saving=notes)
        self._write()
        for runner in self._runners:
            await runner.save()
        self.progress = replace(self.progress, pages=self.page_count, notes=notes, saving=None)
        self._write()

    async def finish(self, notes: Notes | None = None) -> None:
        """Save for the last time. The next run may assign a new timestamp to its pages."""
        await self.save(notes)
        self.progress = replace(self.progress, clean=True)
        self._write()

    async def send_order(self, send_order: Forget | Expire) -> None:
        """Send an order to forget. It applies to all pages fed before it and to none fed later."""
        await self.drain()
        await self._log.send(orders(send_order, self._topics.inbox, self._settings.owners))
        await self.drain()

    async def _poll(self, seconds: float = _POLL_SECONDS) -> None:
        """Let the stages work, deliver their outputs, and trim records that were read."""
        await asyncio.sleep(seconds)
        for task in self._running:
            if task.done():
                task.result()
                raise NeardupError("expected every stage to run until the stream is closed, but one ended")
        self._deliver()
        for runner in self._runners:
            for partition, done in runner.done().items():
                self._log.trim(partition, done)

    def _is_idle(self) -> bool:
        # A runner that has failed has no partitions, so `done` alone would show it as idle.
        if any(runner.phase is not Phase.RUNNING for runner in self._runners):
            return False
        # Without an await this is a consistent snapshot. `done` advances after the outputs are in the log.
        return all(
            # Before the first record of this life, `done` is the position at the end of the last life.
            max(done, self._first.get(each.topic, 0)) == self._log.end(each)
            for runner in self._runners
            for each, done in runner.done().items()
        )

    def _deliver(self) -> None:
        topics = self._topics
        for topic, take in ((topics.verdicts, self._on_verdict), (topics.dead_letters, self._on_dead_letter)):
            partition = Partition(topic, 0)
            records = self._log.read(partition, self._read.get(topic, 0), 10**9)
            for record in records:
                if record.value is not None:
                    take(record.value)
            if records:
                self._read[topic] = records[-1].offset + 1
                self._log.trim(partition, self._read[topic])

    def _write(self) -> None:
        write_progress(self._state, self.progress)
