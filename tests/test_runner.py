"""What the runner promises, on every log; and what it does when things break, on the in-process one."""

import asyncio
import threading
import time
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from neardup import dead_letters
from neardup.errors import LogGap, SendFailed, StateUnavailable
from neardup.log import Log, Output, Partition, Record, TopicSpec
from neardup.log.memory import MemoryLog
from neardup.runner import Phase, Runner
from neardup.settings import Settings
from neardup.stage import Stage, Waves
from tests.log.test_contract import Recorder, join, read
from tests.stages import Copier, Counter

pytestmark = pytest.mark.real_broker  # only the Kafka log heeds it: the stages' topics must be created


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(state=tmp_path / "state", checkpoint_seconds=0.1, poll_records=100, stuck_seconds=0.4)


class Place:
    """A source and a target topic on a log, and runners between them."""

    def __init__(self, log: Log, settings: Settings) -> None:
        name = uuid.uuid4().hex[:8]
        self.log = log
        self.settings = settings
        self.source, self.target, self.letters = f"source-{name}", f"target-{name}", f"letters-{name}"
        self.stages: list[Copier] = []

    async def create(self, partitions: int = 2) -> None:
        specs = [TopicSpec(self.source, partitions), TopicSpec(self.target, partitions), TopicSpec(self.letters, 1)]
        await self.log.create_topics(specs)

    def stage(self, partition: Partition) -> Stage:
        self.stages.append(Copier(self.target))
        return self.stages[-1]

    def counter(self, partition: Partition) -> Stage:
        self.stages.append(Counter(self.target))
        return self.stages[-1]

    def runner(
        self, make_stage: Callable[[Partition], Stage] | None = None, settings: Settings | None = None
    ) -> Runner:
        return Runner(
            log=self.log,
            topic=self.source,
            group=f"copiers-{self.source}",
            make_stage=make_stage or self.stage,
            settings=settings or self.settings,
            dead_letter_topic=self.letters,
        )

    async def feed(self, count: int, partitions: int = 2, start: int = 0, size: int = 0) -> None:
        await self.log.send(
            [Output(self.source, n % partitions, b"key", (b"%d" % n).zfill(size)) for n in range(start, start + count)]
        )

    async def copied(self, count: int) -> list[Record]:
        return await self._read(self.target, count)

    async def rejected(self, count: int) -> list[Record]:
        return await self._read(self.letters, count)

    async def _read(self, topic: str, count: int) -> list[Record]:
        consumer, recorder = await join(self.log, topic, f"check-{uuid.uuid4().hex[:6]}", Recorder())
        try:
            return await read(consumer, recorder, count)
        finally:
            await consumer.close()

    async def committed(self) -> dict[int, int | None]:
        consumer, recorder = await join(self.log, self.source, "copiers", Recorder())
        async with asyncio.timeout(10):
            while len(recorder.mine) < 2:
                await consumer.poll((), timeout=0.05, max_records=1)
        found = {each.partition: await consumer.committed(each) for each in recorder.mine}
        await consumer.close()
        return found


@pytest.fixture
async def place(log: Log, settings: Settings) -> Place:
    made = Place(log, settings)
    await made.create()
    return made


@pytest.fixture
async def memory(settings: Settings) -> Place:
    made = Place(MemoryLog(), settings)
    await made.create()
    return made


@asynccontextmanager
async def running(*runners: Runner) -> AsyncIterator[list["asyncio.Task[None]"]]:
    """Run until the block ends, then stop cleanly. Errors of the runners surface here."""
    tasks = [asyncio.create_task(runner.run()) for runner in runners]
    try:
        yield tasks
    finally:
        for runner in runners:
            runner.stop()
        await asyncio.wait(tasks, timeout=20)
    for task in tasks:
        task.result()


async def until(reached: Callable[[], bool], seconds: float = 15) -> None:
    async with asyncio.timeout(seconds):
        while not reached():
            await asyncio.sleep(0.01)


def sorted_values(records: Sequence[Record]) -> list[int]:
    return sorted(int(record.value or b"") for record in records)


async def test_every_record_is_processed_once_and_in_order(place: Place) -> None:
    await place.feed(1000)
    async with running(place.runner()):
        records = await place.copied(1000)
    assert sorted_values(records) == list(range(1000))
    for partition in (0, 1):
        values = [int(record.value or b"") for record in records if record.partition == partition]
        assert values == sorted(values)


async def test_a_clean_stop_commits_everything(place: Place) -> None:
    async with running(place.runner(settings=replace(place.settings, checkpoint_seconds=3600))):
        await place.feed(500)
        await place.copied(500)
    assert await place.committed() == {0: 250, 1: 250}
    await place.feed(10, start=500)
    async with running(place.runner()):
        records = await place.copied(510)
    assert sorted_values(records) == list(range(510))


async def test_checkpoints_come_by_time_while_idle(place: Place) -> None:
    async with running(place.runner()):
        await place.feed(10)
        await place.copied(10)
        await until(lambda: sum("checkpoint 5" in stage.events for stage in place.stages) == 2)


async def test_a_stage_that_keeps_something_back_is_asked_again_though_nothing_new_comes(memory: Place) -> None:
    class Slow(Copier):
        """Says only at the third time that all it was given is safe."""

        def checkpoint(self) -> int:
            super().checkpoint()
            return self._next if self.events.count(f"checkpoint {self._next}") >= 3 else 0

    def slow(partition: Partition) -> Stage:
        memory.stages.append(Slow(memory.target))
        return memory.stages[-1]

    async with running(memory.runner(slow)):
        await memory.feed(10)
        await until(lambda: [stage.events.count("checkpoint 5") for stage in memory.stages] == [3, 3])
        await asyncio.sleep(3 * memory.settings.checkpoint_seconds)
    assert [stage.events.count("checkpoint 5") for stage in memory.stages] == [3, 3]


async def test_checkpoints_come_by_count(memory: Place) -> None:
    settings = replace(memory.settings, checkpoint_seconds=3600, checkpoint_records=100, poll_records=50)
    async with running(memory.runner(settings=settings)):
        await memory.feed(800)
        await memory.copied(800)
        await until(lambda: all("checkpoint 400" in stage.events for stage in memory.stages))
    assert all(sum("checkpoint" in event for event in stage.events) == 4 for stage in memory.stages)


async def test_a_bad_record_goes_to_dead_letters_and_the_rest_goes_on(place: Place) -> None:
    bad = Output(place.source, 1, b"which", b"bad apple", [("content-type", b"text/html")])
    await place.feed(10)
    await place.log.send([bad])
    await place.feed(10, start=10)
    async with running(place.runner()):
        records = await place.copied(20)
        (record,) = await place.rejected(1)
    assert sorted_values(records) == list(range(20))
    letter = dead_letters.decode(record.value)
    assert (letter.topic, letter.partition, letter.offset) == (place.source, 1, 5)
    assert (letter.key, letter.value, letter.headers) == (bad.key, bad.value, tuple(bad.headers))
    assert (letter.stage, letter.reason, letter.detail) == ("copier", "unwanted", "starts with bad")


async def test_a_stage_with_state_decides_where_reading_starts(place: Place) -> None:
    await place.feed(100)
    async with running(place.runner(place.counter)):
        await place.copied(100)
    # One partition's state is lost, the other one's is older than the commit.
    state = place.settings.state
    (state / f"{place.source}-0" / "count").unlink()
    (state / f"{place.source}-1" / "count").write_text("40")
    async with running(place.runner(place.counter)):
        records = await place.copied(160)
    again = [record.value for record in records]
    assert len(again) == 160
    assert sorted({int(value or b"") for value in again}) == list(range(100))


async def test_partitions_are_handed_over_with_nothing_lost_or_repeated(place: Place) -> None:
    first = place.runner()
    second = place.runner()
    async with running(first):
        await place.feed(200)
        await place.copied(200)
        async with running(second):
            await until(lambda: len(first.assignment) == 1 and len(second.assignment) == 1)
            await place.feed(200, start=200)
            await place.copied(400)
        await until(lambda: len(first.assignment) == 2)
        await place.feed(200, start=400)
        records = await place.copied(600)
    assert sorted_values(records) == list(range(600))


async def test_a_stage_that_comes_back_after_a_rebalance_is_not_reopened(place: Place) -> None:
    first, second = place.runner(), place.runner()
    async with running(first):
        await until(lambda: len(first.assignment) == 2)
        async with running(second):
            await until(lambda: len(second.assignment) == 1)
        await until(lambda: len(first.assignment) == 2)
        # Two partitions of the first runner, one of the second, and one that came back from it.
        assert sum(stage.events.count("open") for stage in place.stages) == 4
    assert all(stage.events[-1] == "close" for stage in place.stages)


async def test_an_unexpected_error_stops_the_worker_with_nothing_committed(place: Place) -> None:
    def explode(records: Sequence[Record]) -> None:
        if any(record.value == b"33" for record in records):
            time.sleep(0.5)  # by then the other partition has something that it could commit
            raise ZeroDivisionError("a bug")

    await place.feed(100)
    settings = replace(place.settings, poll_records=1000, checkpoint_seconds=3600, threads=2)
    runner = place.runner(lambda partition: Copier(place.target, explode), settings)
    with pytest.raises(ZeroDivisionError):
        async with asyncio.timeout(20):
            await runner.run()
    assert runner.phase is Phase.FAILED
    assert runner.not_ready() == "failed"
    assert await place.committed() == {0: None, 1: None}
    async with running(place.runner()):
        records = await place.copied(150)  # the other partition's fifty were said, and are said again
    assert set(sorted_values(records)) == set(range(100))


async def test_an_error_while_stopping_is_not_swallowed(memory: Place) -> None:
    class Unsaved(Copier):
        def checkpoint(self) -> int:
            raise OSError("no space left")

    await memory.feed(10)
    settings = replace(memory.settings, checkpoint_seconds=3600)
    with pytest.raises(StateUnavailable, match="got: no space left; free some space"):
        async with running(memory.runner(lambda partition: Unsaved(memory.target), settings)):
            await memory.copied(10)
    assert await memory.committed() == {0: None, 1: None}


async def test_a_state_that_is_ahead_of_the_log_is_a_gap(place: Place) -> None:
    directory = place.settings.state / f"{place.source}-0"
    directory.mkdir(parents=True)
    (directory / "count").write_text("7000")
    expected = rf"expected to read offset 7000, the log holds 0 to 0.*delete the state directory {directory} and reset"
    with pytest.raises(LogGap, match=expected):
        await place.runner(place.counter).run()


class SlowLog(MemoryLog):
    """Acknowledges an output of the watched topics only when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.held: dict[str, asyncio.Event] = {}
        self.sent: list[str] = []
        self.fail = False

    async def send(self, outputs: Sequence[Output]) -> None:
        topic = outputs[0].topic
        self.sent.append(topic)
        if topic in self.held:
            await self.held[topic].wait()
        if self.fail:
            raise SendFailed("the broker is away")
        await super().send(outputs)


class TwoWaves(Copier):
    """Says "first" before it says "second"."""

    def process(self, records: Sequence[Record]) -> Waves:
        copies = super().process(records).waves[0]
        return Waves([[Output("first", 0, None, b"1")], copies])


@pytest.fixture
async def slow(settings: Settings) -> Place:
    made = Place(SlowLog(), settings)
    await made.create()
    await made.log.create_topics([TopicSpec("first", 1)])
    return made


def slow_log(place: Place) -> SlowLog:
    assert isinstance(place.log, SlowLog)
    return place.log


async def test_a_wave_is_sent_only_when_the_wave_before_is_acknowledged(slow: Place) -> None:
    log = slow_log(slow)
    log.held["first"] = asyncio.Event()
    await slow.feed(10, partitions=1)
    async with running(slow.runner(lambda partition: TwoWaves(slow.target))):
        await until(lambda: "first" in log.sent)
        await asyncio.sleep(0.2)
        assert slow.target not in log.sent
        log.held["first"].set()
        await until(lambda: slow.target in log.sent)


async def test_nothing_is_checkpointed_before_its_outputs_are_acknowledged(slow: Place) -> None:
    log = slow_log(slow)
    log.held[slow.target] = asyncio.Event()
    await slow.feed(10, partitions=1)
    async with running(slow.runner()):
        await until(lambda: slow.target in log.sent)
        await asyncio.sleep(0.5)  # five times the checkpoint interval
        assert not any("checkpoint" in event for stage in slow.stages for event in stage.events)
        log.held[slow.target].set()
        await until(lambda: any("checkpoint 10" in stage.events for stage in slow.stages))


async def test_an_output_that_is_not_acknowledged_stops_the_worker(slow: Place) -> None:
    log = slow_log(slow)
    await slow.feed(10)
    log.fail = True
    runner = slow.runner()
    with pytest.raises(SendFailed):
        async with asyncio.timeout(10):
            await runner.run()
    log.fail = False
    assert await slow.committed() == {0: None, 1: None}


async def test_a_stop_does_not_wait_forever_for_acknowledgements(slow: Place) -> None:
    log = slow_log(slow)
    log.held[slow.target] = asyncio.Event()
    await slow.feed(10, partitions=1)
    runner = slow.runner(settings=replace(slow.settings, stop_seconds=0.3))
    async with running(runner):
        await until(lambda: slow.target in log.sent)
        before = time.monotonic()
    assert time.monotonic() - before < 5
    assert await slow.committed() == {0: None, 1: None}
    assert slow.stages[0].events[-1] == "close"


async def test_a_stage_is_closed_only_when_its_thread_has_ended(memory: Place) -> None:
    started, events = threading.Event(), []

    def slowly(records: Sequence[Record]) -> None:
        started.set()
        time.sleep(0.5)
        events.append("processed")

    class Watched(Copier):
        def close(self) -> None:
            events.append("closed")

    await memory.feed(10, partitions=1)
    runner = memory.runner(
        lambda partition: Watched(memory.target, slowly) if partition.partition == 0 else Copier(memory.target),
        replace(memory.settings, stop_seconds=0.1),
    )
    async with running(runner):
        await until(started.is_set)
    assert events == ["processed", "closed"]


async def test_memory_in_flight_is_bounded(slow: Place) -> None:
    """With acknowledgements held back, a partition takes three batches: one sent, one processed, one waiting."""
    log = slow_log(slow)
    log.held[slow.target] = asyncio.Event()
    await slow.feed(5000, partitions=1)
    runner = slow.runner(settings=replace(slow.settings, checkpoint_seconds=3600))
    async with running(runner):
        await until(lambda: slow.target in log.sent)
        await asyncio.sleep(0.3)
        processed = [event for stage in slow.stages for event in stage.events if event.startswith("process")]
        assert processed == ["process 0-99", "process 100-199"]
        log.held[slow.target].set()
        assert len(await slow.copied(5000)) == 5000


async def test_of_large_records_fewer_are_in_hand(slow: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound is on bytes, over all partitions together; and it stops nothing for good."""
    monkeypatch.setattr("neardup.runner.IN_HAND_BYTES", 100_000)
    log = slow_log(slow)
    log.held[slow.target] = asyncio.Event()
    await slow.feed(200, size=10_000)
    runner = slow.runner()
    async with running(runner):
        await until(lambda: slow.target in log.sent)
        await asyncio.sleep(0.3)
        assert 80_000 <= sum(worker.in_hand_bytes for worker in runner._workers.values()) <= 110_000
        log.held[slow.target].set()
        assert len(await slow.copied(200)) == 200
        await until(lambda: not any(worker.in_hand_bytes for worker in runner._workers.values()))


async def test_after_records_larger_than_expected_no_more_are_read(
    slow: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("neardup.runner.IN_HAND_BYTES", 100_000)
    log = slow_log(slow)
    log.held[slow.target] = asyncio.Event()
    await slow.feed(40, size=200_000)
    runner = slow.runner()
    async with running(runner):
        await until(lambda: slow.target in log.sent)
        await asyncio.sleep(0.3)
        in_hand = sum(worker.in_hand_bytes for worker in runner._workers.values())
        assert in_hand == 200_000 * (100_000 // 2**14), "expected those of the first poll alone"
        log.held[slow.target].set()
        assert len(await slow.copied(40)) == 40


async def test_large_batches_of_different_partitions_are_processed_in_parallel(memory: Place) -> None:
    meet = threading.Barrier(2, timeout=10)
    settings = replace(memory.settings, threads=2)
    await memory.feed(10, size=100_000)
    async with running(memory.runner(lambda partition: Copier(memory.target, lambda _: void(meet.wait())), settings)):
        assert len(await memory.copied(10)) == 10


async def test_readiness_fails_when_a_partition_with_lag_stands_still(memory: Place) -> None:
    go_on = threading.Event()
    runner = memory.runner(lambda partition: Copier(memory.target, lambda _: void(go_on.wait(20))))
    assert runner.not_ready() == "starting"
    async with running(runner):
        await until(lambda: runner.not_ready() is None)
        await asyncio.sleep(1)  # without lag, standing still is fine
        assert runner.not_ready() is None
        await memory.feed(10, partitions=1)
        await until(lambda: runner.not_ready() == f"no progress on {memory.source}-0", seconds=5)
        go_on.set()
        await until(lambda: runner.not_ready() is None, seconds=5)
    assert runner.not_ready() == "stopped"


async def test_a_stop_is_quick_under_load(memory: Place) -> None:
    await memory.feed(50_000)
    runner = memory.runner()
    task = asyncio.create_task(runner.run())
    await until(lambda: any(len(stage.events) > 3 for stage in memory.stages))
    before = time.monotonic()
    runner.stop()
    await task
    assert time.monotonic() - before < 5
    assert runner.phase is Phase.STOPPED


def void(_: object) -> None:
    return
