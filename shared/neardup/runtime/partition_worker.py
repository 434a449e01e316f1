"""The loop of one stage over one partition: process, send in waves, checkpoint.

Steps overlap: while the outputs of a batch wait for their acknowledgements, the next batch is already processed. Its
outputs are sent only afterwards, so that outputs leave in the order of the records that caused them. A checkpoint waits
for every acknowledgement, so durable state never precedes its outputs. The stage is then frozen for a moment, and
processes the next batch while the frozen state is written.
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
"""The golden ratio: its multiples, modulo 1, are spread evenly for any number of partitions."""
Commit = Callable[[Partition, int], Awaitable[None]]


class PolledBatch(NamedTuple):
    """One or more records of a partition, with the total size of their values. Summing the sizes again is expensive."""

    records: Sequence[Record]
    nbytes: int

    @classmethod
    def of(cls, records: Sequence[Record]) -> "PolledBatch":
        """Return a batch of these records."""
        return cls(records, sum(len(record.value or b"") for record in records))

    def followed_by(self, other: "PolledBatch") -> "PolledBatch":
        """Return a batch of these records and then those of `other`."""
        return PolledBatch([*self.records, *other.records], self.nbytes + other.nbytes)


class PartitionWorker:
    """The owner of a stage between assignment and revocation. It runs on the event loop, and its stage in `threads`."""

    def __init__(
        self,
        partition: Partition,
        stage: Stage,
        position: int,
        *,
        log: Log,
        settings: Settings,
        threads: StageThreads,
        dead_letter_topic: str,
        commit: Commit,
        failed: Callable[[BaseException], None],
    ) -> None:
        self.partition = partition
        self.stage = stage
        self.position = position
        """The next offset to be submitted to this worker."""
        self.done = position
        """The next offset whose outputs are not all acknowledged."""
        self.in_flight_bytes = 0
        """Size of the submitted records whose outputs are not all acknowledged."""
        self._log = log
        self._settings = settings
        self._threads = threads
        self._dead_letter_topic = dead_letter_topic
        self._commit = commit
        self._failed = failed
        self._waiting: PolledBatch | None = None
        self._closing = False
        self._awake = asyncio.Event()
        """Set when records were submitted and when this worker has to end."""
        self._sending: asyncio.Task[None] | None = None
        self._freezing = asyncio.Lock()
        """Held during a checkpoint: one may be due at the moment when `save` is called."""
        self._saving: asyncio.Task[None] | None = None
        self._calls: set[asyncio.Future[Any]] = set()
        """Calls of the stage that run in threads."""
        self._since_checkpoint = 0
        self._behind = False
        """True if the last checkpoint did not cover all processed records: another is then due without new records."""
        # Looked up once: a lookup by labels takes longer than counting.
        name = stage.name
        self._process_seconds = metrics.PROCESS_SECONDS.labels(name)
        self._acknowledge_seconds = metrics.ACKNOWLEDGE_SECONDS.labels(name)
        self._batch_records = metrics.BATCH_RECORDS.labels(name)
        self._records = metrics.RECORDS.labels(name, str(partition.partition))
        self._record_bytes = metrics.RECORD_BYTES.labels(name)
        self._stage_seconds = metrics.STAGE_SECONDS.labels(name)
        # Spread over the second half of the interval: simultaneous checkpoints would occupy all threads.
        spread = 0.5 + partition.partition * _GOLDEN % 1 / 2
        self._checkpoint_at = time.monotonic() + settings.checkpoint_seconds * spread
        self._task = asyncio.create_task(self._work(), name=f"work {partition}")
        self._task.add_done_callback(self._ended)

    @property
    def room(self) -> int:
        """The number of records that `submit` accepts now; 0 unless there is room for at least half a poll."""
        waiting = 0 if self._waiting is None else len(self._waiting.records)
        limit = self._settings.poll_records
        return 0 if self._closing or 2 * waiting > limit else limit - waiting

    def submit(self, batch: PolledBatch) -> None:
        """Submit the next records, at most `room`.

        Records submitted while a batch is processed are joined into one batch: large batches cost less per record.
        """
        assert len(batch.records) <= self.room, f"{self.partition}: expected {self.room} records at most"
        self._waiting = batch if self._waiting is None else self._waiting.followed_by(batch)
        self.in_flight_bytes += batch.nbytes
        self._awake.set()
        self.position = batch.records[-1].offset + 1

    async def finish(self) -> None:
        """Finish the current batch, checkpoint and end; `done` is then the offset to resume from."""
        self._close()
        await asyncio.shield(self._task)

    async def save(self) -> None:
        """Checkpoint now. May be called only when nothing is in flight, so that `done` equals `position`."""
        assert self.done == self.position, f"{self.partition}: expected nothing in flight"
        await self._checkpoint()
        await self._saved()

    async def abandon(self) -> None:
        """End without saving. Waits for running threads, which cannot be stopped, but not for acknowledgements."""
        self._close()
        for task in (self._task, self._sending, self._saving):
            if task is not None:
                task.cancel()
                await asyncio.wait([task])
        if self._calls:
            await asyncio.wait(self._calls)

    async def _work(self) -> None:
        while not self._closing:
            batch = await self._next_batch()
            if batch is not None:
                waves = await self._process(batch)
                await self._acknowledged()
                self._sending = asyncio.create_task(self._send(waves, batch))
                self._sending.add_done_callback(self._ended)
            if self._checkpoint_due():
                await self._checkpoint()
        await self._checkpoint()
        await self._saved()

    async def _next_batch(self) -> PolledBatch | None:
        """Wait for the next records; return None when a checkpoint may be due or this worker has to end."""
        if not self._awake.is_set():
            unsaved = self._saving is None and (self._since_checkpoint or self._behind)
            wait = max(self._checkpoint_at - time.monotonic(), 0.001) if unsaved else None
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._awake.wait()
        if self._closing:
            return None
        batch, self._waiting = self._waiting, None
        self._awake.clear()
        return batch

    async def _process(self, batch: PolledBatch) -> Waves:
        records = batch.records
        with self._process_seconds.time():
            waves = await self._await_call(self._threads.run(lambda: self.stage.process(records), batch.nbytes))
        self._batch_records.observe(len(records))
        self._records.inc(len(records))
        self._record_bytes.inc(batch.nbytes)
        self._since_checkpoint += len(records)
        return waves

    async def _send(self, waves: Waves, batch: PolledBatch) -> None:
        name, records = self.stage.name, batch.records
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
        self.in_flight_bytes -= batch.nbytes

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
        """Freeze the stage, if there is anything to save; the task `_saving` writes the frozen state."""
        async with self._freezing:
            await self._saved()
            await self._acknowledged()
            started = time.monotonic()
            self._checkpoint_at = started + self._settings.checkpoint_seconds
            if self._since_checkpoint == 0 and not self._behind:
                return
            self._since_checkpoint = 0
            save = await self._await_call(self._threads.run(self.stage.freeze))
            self._saving = asyncio.create_task(self._save(save, self.done, started))
            self._saving.add_done_callback(self._ended)

    async def _save(self, save: Callable[[], int], done: int, started: float) -> None:
        offset = await self._await_call(self._threads.save(save))
        del save  # free the frozen state before waiting for the broker
        self._behind = offset < done
        await self._commit(self.partition, offset)
        name, labels = self.stage.name, (self.stage.name, str(self.partition.partition))
        metrics.CHECKPOINTS.labels(name).inc()
        metrics.CHECKPOINT_SECONDS.labels(name).observe(time.monotonic() - started)
        metrics.CHECKPOINT_TIME.labels(*labels).set_to_current_time()
        metrics.REPLAY.labels(*labels).set(self.done - offset)
        self._saving = None
        self._awake.set()  # the next checkpoint may be due

    async def _saved(self) -> None:
        if self._saving is not None:
            await self._saving

    def _close(self) -> None:
        self._closing = True
        self._awake.set()

    async def _await_call(self, call: "asyncio.Future[T]") -> T:
        self._calls.add(call)
        call.add_done_callback(self._calls.discard)
        with using_state(self._settings.state / str(self.partition)):
            # Shielded: a cancelled future would hide that its thread still uses the stage.
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
