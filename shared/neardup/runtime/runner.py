"""The runner, which feeds the stages of a worker from a log. All services use it, with any log.

It guarantees:

- a partition's records reach its stage in order, one batch at a time;
- state is checkpointed only after its outputs are acknowledged: a crash repeats outputs, it never loses one;
- a stage resumes at the offset in its own state; only a stage without state resumes at the committed offset;
- a record that a stage rejects goes to the dead-letter topic; any other error stops the worker and commits nothing;
- back-pressure bounds memory: a busy partition is not polled, and no partition is polled while the records in flight
  exceed a limit in bytes.

The runner does not depend on what a stage does, and never retries a stage that raised.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Collection
from enum import StrEnum
from pathlib import Path
from typing import Final

from neardup import metrics
from neardup.errors import LogError, LogGap
from neardup.log import Consumer, Listener, Log, Partition
from neardup.runtime.partition_worker import PartitionWorker, PolledBatch
from neardup.runtime.stage import Stage, using_state
from neardup.runtime.thread_pool import StageThreads
from neardup.runtime.watchdog import BrokerContact, Watchdog
from neardup.settings import Settings

logger = logging.getLogger(__name__)

_POLL_IDLE_SECONDS: Final = 0.25
_POLL_BUSY_SECONDS: Final = 0.005
_WATCH_SECONDS: Final = 2.0
_CANCEL_SECONDS: Final = 1.0
IN_FLIGHT_BYTES: Final = 128 * 2**20
"""Total size of the records in flight at which a worker stops polling, without their outputs."""
_FIRST_RECORD_BYTES: Final = 2**14
"""Expected size of a record in bytes before the first poll."""
_RECORD_BYTES_DECAY: Final = 0.9


class Phase(StrEnum):
    """The state of a runner."""

    STARTING = "starting"
    REBALANCING = "rebalancing"
    RUNNING = "running"
    STOPPED = "stopped"
    FAILED = "failed"


class Runner(Listener):
    """Runs one kind of stage over the partitions of one topic that are assigned to this worker."""

    def __init__(
        self,
        *,
        log: Log,
        topic: str,
        group: str,
        make_stage: Callable[[Partition], Stage],
        settings: Settings,
        dead_letter_topic: str,
        patience: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.phase = Phase.STARTING
        self._log = log
        self._topic = topic
        self._group = group
        self._make_stage = make_stage
        self._settings = settings
        self._dead_letter_topic = dead_letter_topic
        self._patience = patience
        self._watchdog = Watchdog(settings.stuck_seconds, clock)
        self._contact = BrokerContact(clock)
        self._workers: dict[Partition, PartitionWorker] = {}
        self._idle_stages: dict[Partition, tuple[Stage, int]] = {}
        self._assignments = 0
        self._record_bytes = float(_FIRST_RECORD_BYTES)
        """Expected size of a record: the highest average of a recent poll, decaying with every poll."""
        self._stopping = asyncio.Event()
        self._error: BaseException | None = None
        self._consumer: Consumer
        self._threads = StageThreads(settings.threads)

    async def run(self) -> None:
        """Run until `stop` or an error. Raises the error; closes everything in either case."""
        if not await self._join():
            await self._shut_down()
            return
        self._contact.answered()
        watching = [asyncio.create_task(self._watch_offsets()), asyncio.create_task(self._watch_contact())]
        for task in watching:
            task.add_done_callback(self._ended)
        try:
            while not self._stopping.is_set():
                await self._step()
        except BaseException as error:
            self._fail(error)
        for task in watching:
            task.cancel()
        # Bounded: a query whose connection broke may not notice that it is cancelled.
        await asyncio.wait(watching, timeout=_CANCEL_SECONDS)
        silence = self._contact.silence()
        await self._consumer.close()
        await self._shut_down()
        if self._error is None and silence is not None:
            logger.warning(
                "stopped without the broker, whose last answer was %.0f s ago; records whose outputs or offsets it did "
                "not acknowledge are processed again at the next start",
                silence,
            )
        if self._error is not None:
            raise self._error

    async def _join(self) -> bool:
        """Join the group; return False if a stop was requested before, which a broker that is away must not delay."""
        joining = asyncio.create_task(
            self._log.consumer(
                self._topic, self._group, self, instance=self._settings.instance, patience=self._patience
            )
        )
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait([joining, stopping], return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
            if not joining.done():
                joining.cancel()
                await asyncio.wait([joining])
        if joining.cancelled() and self._stopping.is_set():
            return False
        self._consumer = joining.result()
        return True

    def stop(self) -> None:
        """Request a clean end: the batches in flight are finished, checkpointed and committed."""
        self._stopping.set()

    def abandon(self) -> None:
        """Request an end without saving and committing, as after an error; `run` then raises."""
        self._fail(LogError("abandoned"))

    def not_ready(self) -> str | None:
        """Return the reason why this worker cannot do its work now, or None."""
        ended = self.phase in (Phase.STOPPED, Phase.FAILED)
        if not ended and (silence := self._contact.silence()) is not None:
            return f"no contact with the broker for {silence:.0f} s"
        if self.phase is not Phase.RUNNING:
            return str(self.phase)
        if stuck := self._watchdog.stuck():
            return "no progress on " + ", ".join(map(str, stuck))
        return None

    def done(self) -> dict[Partition, int]:
        """Return the next offset whose outputs are not all acknowledged, for every assigned partition."""
        return {partition: worker.done for partition, worker in self._workers.items()}

    async def save(self) -> None:
        """Checkpoint every partition. May be called only when nothing is in flight, as in the embedded run."""
        for worker in self._workers.values():
            await worker.save()

    @property
    def assignment(self) -> list[Partition]:
        """The assigned partitions, sorted."""
        return sorted(self._workers)

    async def assigned(self, consumer: Consumer, partitions: Collection[Partition]) -> None:
        """Open the stages of these partitions and seek to the offsets in their state."""
        self._consumer = consumer
        for partition in self._idle_stages.keys() - set(partitions):
            stage, _ = self._idle_stages.pop(partition)
            await self._threads.run(stage.close)
        for partition in partitions:
            idle = self._idle_stages.pop(partition) if partition in self._idle_stages else None
            stage, offset = idle or await self._open(partition)
            try:
                await self._seek(partition, offset, stage)
            except BaseException:
                await self._threads.run(stage.close)
                raise
            self._workers[partition] = PartitionWorker(
                partition,
                stage,
                offset,
                log=self._log,
                settings=self._settings,
                threads=self._threads,
                dead_letter_topic=self._dead_letter_topic,
                commit=self._commit,
                failed=self._fail,
            )
            # Nothing after `offset` is saved and nothing is processed: a restart would repeat nothing.
            metrics.REPLAY.labels(self._stage_name, str(partition.partition)).set(0)
        self._assignments += 1
        self.phase = Phase.RUNNING
        metrics.REBALANCES.labels(self._stage_name).inc()
        metrics.ASSIGNED.labels(self._stage_name).set(len(partitions))
        logger.info("assigned %s", _listed(partitions))

    async def revoked(self, consumer: Consumer, partitions: Collection[Partition]) -> None:
        """Finish the batches in flight and save. Stages stay open: most partitions are assigned again at once."""
        self._assignments += 1
        if self.phase is Phase.RUNNING:
            self.phase = Phase.REBALANCING
        workers = [self._workers.pop(partition) for partition in partitions if partition in self._workers]
        finished = await asyncio.gather(*(self._end(worker) for worker in workers))
        late = [worker.partition for worker, in_time in zip(workers, finished, strict=True) if not in_time]
        if late and self._error is None:
            logger.warning(
                "no acknowledgement within %g s: the last batches of %s will be processed again",
                self._settings.stop_seconds,
                _listed(late),
            )
        metrics.ASSIGNED.labels(self._stage_name).set(0)
        logger.info("revoked %s", _listed(partitions))

    async def _end(self, worker: PartitionWorker) -> bool:
        """End a worker; return whether it finished."""
        if finished := await self._finished(worker):
            self._idle_stages[worker.partition] = (worker.stage, worker.done)
        else:
            # Outputs of its state may be missing from the log: this stage must not be used again.
            await worker.abandon()
            await self._threads.run(worker.stage.close)
        self._watchdog.forget(worker.partition)
        labels = (self._stage_name, str(worker.partition.partition))
        metrics.withdraw(labels, metrics.LAG, metrics.CHECKPOINT_TIME, metrics.REPLAY)
        return finished

    async def _finished(self, worker: PartitionWorker) -> bool:
        """Finish a worker; return whether all its outputs are acknowledged and its state is saved."""
        if self._error is not None:
            return False
        try:
            await asyncio.wait_for(worker.finish(), self._settings.stop_seconds)
        except TimeoutError:
            return False
        except Exception as error:
            self._fail(error)
            return False
        return True

    async def _step(self) -> None:
        if self._error is not None:
            raise self._error
        free = {partition: room for partition, worker in self._workers.items() if (room := worker.room)}
        busy = len(free) < len(self._workers)
        left = IN_FLIGHT_BYTES - sum(worker.in_flight_bytes for worker in self._workers.values())
        if (busy and not free) or left <= 0:
            await asyncio.sleep(_POLL_BUSY_SECONDS)
            return
        assignments = self._assignments
        found = await self._consumer.poll(
            free,
            timeout=_POLL_BUSY_SECONDS if busy else _POLL_IDLE_SECONDS,
            max_records=max(1, min(*free.values(), self._settings.poll_records, int(left / self._record_bytes))),
        )
        batches = {partition: PolledBatch.of(records) for partition, records in found.items() if records}
        self._update_record_bytes(batches.values())
        for partition, batch in batches.items():
            worker = self._workers.get(partition)
            if worker is None:
                continue
            if assignments != self._assignments:
                # Polled before a rebalance, returned after it: the worker may resume at another offset.
                self._consumer.seek(partition, worker.position)
            else:
                worker.submit(batch)

    def _update_record_bytes(self, batches: Collection[PolledBatch]) -> None:
        if count := sum(len(batch.records) for batch in batches):
            mean = sum(batch.nbytes for batch in batches) / count
            self._record_bytes = max(mean, _RECORD_BYTES_DECAY * self._record_bytes, 1.0)

    async def _open(self, partition: Partition) -> tuple[Stage, int]:
        stage = self._make_stage(partition)
        directory = self._directory(partition)
        with using_state(directory):
            offset = await self._threads.run(lambda: stage.open(directory))
        if offset is None:
            offset = await self._consumer.committed(partition)
        if offset is None:
            offset = 0
        logger.info("opened %s at offset %d", partition, offset)
        return stage, offset

    async def _seek(self, partition: Partition, offset: int, stage: Stage) -> None:
        first, end = (await self._consumer.bounds([partition]))[partition]
        if offset == 0:
            # Offset 0 means the oldest record that the log still holds.
            offset = first
        if not first <= offset <= end:
            raise LogGap(
                f"{partition}: expected to read offset {offset}, the log holds {first} to {end}. Records were removed "
                f"by retention or the topic was recreated: {stage.after_gap(self._directory(partition), self._group)}"
            )
        self._consumer.seek(partition, offset)

    async def _commit(self, partition: Partition, offset: int) -> None:
        if self._error is not None:
            return
        try:
            await self._consumer.commit({partition: offset})
        except LogError as error:
            # Harmless: the next owner of the partition repeats some records.
            logger.warning("offset %d of %s was not committed: %s", offset, partition, error)

    async def _watch_offsets(self) -> None:
        """Query the log for its offsets, which measures lag and proves contact with the broker.

        The query waits for as long as the broker is away. It is not cancelled before: a cancelled request would
        leave its connection in an unknown state.
        """
        while True:
            await asyncio.sleep(min(_WATCH_SECONDS, self._settings.stuck_seconds / 4))
            # A worker without partitions needs a broker, too: it must be able to take over at any time.
            partitions = list(self._workers) or [Partition(self._topic, 0)]
            try:
                bounds = await self._consumer.bounds(partitions)
            except LogError as error:
                logger.warning("lag is unknown: %s", error)
                continue
            if self._contact.answered():
                # No partition could make progress during the outage.
                for partition in self._workers:
                    self._watchdog.forget(partition)
            metrics.BROKER_CONTACT_TIME.labels(self._stage_name).set_to_current_time()
            for partition, (_, end) in bounds.items():
                if (worker := self._workers.get(partition)) is not None:
                    self._watchdog.observe(partition, worker.done, end)
                    lag = max(end - worker.done, 0)
                    metrics.LAG.labels(self._stage_name, str(partition.partition)).set(lag)
            metrics.STUCK.labels(self._stage_name).set(len(self._watchdog.stuck()))

    async def _watch_contact(self) -> None:
        while True:
            await asyncio.sleep(_WATCH_SECONDS)
            self._contact.report()

    def _ended(self, task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        if self._error is None:
            self._error = error
            self.phase = Phase.FAILED
            logger.error("%s stops without committing: %r", self._group, error)

    async def _shut_down(self) -> None:
        # Partitions of an assignment that failed half-way were never revoked.
        await asyncio.gather(*(self._end(worker) for worker in self._workers.values()))
        self._workers.clear()
        for stage, _ in self._idle_stages.values():
            await self._threads.run(stage.close)
        self._idle_stages.clear()
        self._threads.close()
        if self._error is None:
            self.phase = Phase.STOPPED

    def _directory(self, partition: Partition) -> Path:
        return self._settings.state / str(partition)

    @property
    def _stage_name(self) -> str:
        return self._group.rpartition(".")[2]


def _listed(partitions: Collection[Partition]) -> str:
    return ", ".join(map(str, partitions)) or "no partitions"
