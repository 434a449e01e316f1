"""Drives one stage over one partition: process, send in waves, checkpoint.

Steps overlap: while the outputs of a batch wait for their acknowledgements, the next batch is already processed.
Its outputs are sent only afterwards, so that outputs leave in the order of the records that caused them. A checkpoint
waits for every acknowledgement, so what is durable was also said; then the stage is frozen for a moment, and goes on
while what was frozen is written.
"""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from neardup import metrics
from neardup.log import Log, Output, Partition, Record
from neardup.messages.dead_letters import dead_letters
from neardup.runtime.stage import Stage, Waves, using_state
from neardup.runtime.thread_pool import StageThreads
from neardup.settings import Settings

T = TypeVar("T")

_GOLDEN: Final = 0.618034
"""Multiples of it, modulo 1, are spread evenly however many there are."""
Commit = Callable[[Partition, int], Awaitable[None]]


class PolledBatch(NamedTuple):
    """Records to be handed over, one or more, and how many bytes their values have: to look at all again is dear."""

    records: Sequence[Record]
    nbytes: int

    @classmethod
    def of(cls, records: Sequence[Record]) -> "PolledBatch":
        """These records."""
        return cls(records, sum(len(record.value or b"") for record in records))

    def followed_by(self, other: "PolledBatch") -> "PolledBatch":
        """These records and then those."""
        return PolledBatch([*self.records, *other.records], self.nbytes + other.nbytes)


class PartitionWorker:
    """Owns a stage between assignment and revocation. Lives on the event loop; the stage runs in the crew."""

    def __init__(
        self,
        partition: Partition,
        stage: Stage,
        position: int,
        *,
        log: Log,
        settings: Settings,
        crew: StageThreads,
        dead_letter_topic: str,
        commit: Commit,
        failed: Callable[[BaseException], None],
    ) -> None:
        self.partition = partition
        self.stage = stage
        self.position = position
        """The next offset to be handed to this worker."""
        self.done = position
        """The next offset whose outputs are not all acknowledged."""
        self.in_hand_bytes = 0
        """Of the records that were handed over and whose outputs are not all acknowledged."""
        self._log = log
        self._settings = settings
        self._crew = crew
        self._dead_letter_topic = dead_letter_topic
        self._commit = commit
        self._failed = failed
        self._given: PolledBatch | None = None
        self._closing = False
        self._awake = asyncio.Event()
        """Something was given, or this worker is to end."""
        self._sending: asyncio.Task[None] | None = None
        self._freezing = asyncio.Lock()
        """The clock and `save` may ask for a checkpoint at once."""
        self._saving: asyncio.Task[None] | None = None
        self._in_hand: set[asyncio.Future[Any]] = set()
        """What threads do with the stage."""
        self._since_checkpoint = 0
        self._behind = False
        """Whether the stage keeps back some of what it was given: it is asked again though nothing new comes."""
        # Looked up once: finding a metric by its labels takes longer than counting.
        name = stage.name
        self._process_seconds = metrics.PROCESS_SECONDS.labels(name)
        self._acknowledge_seconds = metrics.ACKNOWLEDGE_SECONDS.labels(name)
        self._batch_records = metrics.BATCH_RECORDS.labels(name)
        self._records = metrics.RECORDS.labels(name, str(partition.partition))
        self._record_bytes = metrics.RECORD_BYTES.labels(name)
        self._stage_seconds = metrics.STAGE_SECONDS.labels(name)
        # Spread over the second half of the interval: saving takes a thread, and all at once would take them all.
        spread = 0.5 + partition.partition * _GOLDEN % 1 / 2
        self._checkpoint_at = time.monotonic() + settings.checkpoint_seconds * spread
        self._task = asyncio.create_task(self._work(), name=f"work {partition}")
        self._task.add_done_callback(self._ended)

    @property
    def room(self) -> int:
        """How many records more may be given now; 0 unless they are worth a poll."""
        waiting = 0 if self._given is None else len(self._given.records)
        most = self._settings.poll_records
        return 0 if self._closing or 2 * waiting > most else most - waiting

    def give(self, given: PolledBatch) -> None:
        """Hand over the next records, as many as there is room for.

        What comes while a batch is processed waits and makes one batch: large ones cost everybody less.
        """
        assert len(given.records) <= self.room, f"{self.partition}: expected {self.room} records at most"
        self._given = given if self._given is None else self._given.followed_by(given)
        self.in_hand_bytes += given.nbytes
        self._awake.set()
        self.position = given.records[-1].offset + 1

    async def finish(self) -> None:
        """End after the batch in hand and checkpoint; `done` is then the offset to go on from."""
        self._close()
        await asyncio.shield(self._task)

    async def save(self) -> None:
        """Checkpoint now. Only while nothing is in hand and nothing is given: `done` is then `position`."""
        assert self.done == self.position, f"{self.partition}: expected nothing in hand"
        await self._checkpoint()
        await self._saved()

    async def abandon(self) -> None:
        """End with nothing more saved. Waits for threads, which cannot be stopped, but not for acknowledgements."""
        self._close()
        for task in (self._task, self._sending, self._saving):
            if task is not None:
                task.cancel()
                await asyncio.wait([task])
        if self._in_hand:
            await asyncio.wait(self._in_hand)

    async def _work(self) -> None:
        while not self._closing:
            given = await self._next_batch()
            if given is not None:
                waves = await self._process(given)
                await self._acknowledged()
                self._sending = asyncio.create_task(self._send(waves, given))
                self._sending.add_done_callback(self._ended)
            if self._checkpoint_due():
                await self._checkpoint()
        await self._checkpoint()
        await self._saved()

    async def _next_batch(self) -> PolledBatch | None:
        """The next records; None when it is time to look at the clock, or to end."""
        if not self._awake.is_set():
            unsaved = self._saving is None and (self._since_checkpoint or self._behind)
            wait = max(self._checkpoint_at - time.monotonic(), 0.001) if unsaved else None
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._awake.wait()
        if self._closing:
            return None
        given, self._given = self._given, None
        self._awake.clear()
        return given

    async def _process(self, given: PolledBatch) -> Waves:
        records = given.records
        with self._process_seconds.time():
            waves = await self._made(self._crew.run(lambda: self.stage.process(records), given.nbytes))
        self._batch_records.observe(len(records))
        self._records.inc(len(records))
        self._record_bytes.inc(given.nbytes)
        self._since_checkpoint += len(records)
        return waves

    async def _send(self, waves: Waves, given: PolledBatch) -> None:
        name, records = self.stage.name, given.records
        letters = dead_letters(waves.rejected, name, self._dead_letter_topic)
        with self._acknowledge_seconds.time():
            for wave in [letters, *waves.waves]:
                if wave:
                    await self._log.send(wave)
                    _count(name, wave)
        for rejection in waves.rejected:
            metrics.DEAD_LETTERS.labels(name, rejection.error.reason).inc()
        self._stage_seconds.observe(max(time.time() - records[0].timestamp / 1000, 0.0))
        self.done = records[-1].offset + 1
        self.in_hand_bytes -= given.nbytes

    async def _acknowledged(self) -> None:
        if self._sending is not None:
            await self._sending
            self._sending = None

    def _checkpoint_due(self) -> bool:
        if self._saving is not None:
            return False
        late = time.monotonic() >= self._checkpoint_at
        unsaved = self._since_checkpoint > 0 or self._behind
        full = self.stage.is_full or self._since_checkpoint >= self._settings.checkpoint_records
        return full or (late and unsaved)

    async def _checkpoint(self) -> None:
        """Freeze the stage, if there is anything to save; `_saving` makes it durable."""
        async with self._freezing:
            await self._saved()
            await self._acknowledged()
            started = time.monotonic()
            self._checkpoint_at = started + self._settings.checkpoint_seconds
            if self._since_checkpoint == 0 and not self._behind:
                return
            self._since_checkpoint = 0
            save = await self._made(self._crew.run(self.stage.freeze))
            self._saving = asyncio.create_task(self._save(save, self.done, started))
            self._saving.add_done_callback(self._ended)

    async def _save(self, save: Callable[[], int], done: int, started: float) -> None:
        offset = await self._made(self._crew.save(save))
        del save  # what it froze is not needed while the broker is asked
        self._behind = offset < done
        await self._commit(self.partition, offset)
        name, labels = self.stage.name, (self.stage.name, str(self.partition.partition))
        metrics.CHECKPOINTS.labels(name).inc()
        metrics.CHECKPOINT_SECONDS.labels(name).observe(time.monotonic() - started)
        metrics.CHECKPOINT_TIME.labels(*labels).set_to_current_time()
        metrics.REPLAY.labels(*labels).set(self.done - offset)
        self._saving = None
        self._awake.set()  # to look at the clock again

    async def _saved(self) -> None:
        if self._saving is not None:
            await self._saving

    def _close(self) -> None:
        self._closing = True
        self._awake.set()

    async def _made(self, call: "asyncio.Future[T]") -> T:
        self._in_hand.add(call)
        call.add_done_callback(self._in_hand.discard)
        with using_state(self._settings.state / str(self.partition)):
            # Shielded: a cancelled future would hide that its thread is still at work on the stage.
            return await asyncio.shield(call)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failed(error)


def _count(name: str, outputs: Sequence[Output]) -> None:
    by_topic: dict[str, int] = {}
    for output in outputs:
        by_topic[output.topic] = by_topic.get(output.topic, 0) + 1
    for topic, count in by_topic.items():
        metrics.OUTPUTS.labels(name, topic).inc(count)
