"""Tests of the runner with late acknowledgements, large batches and stalled stages, on the in-process log."""

import asyncio
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client import REGISTRY

from neardup.errors import SendFailed
from neardup.log import Listener, Output, Partition, Record, TopicSpec
from neardup.log.memory import MemoryConsumer, MemoryLog
from neardup.runtime.runner import Phase
from neardup.runtime.stage import Waves
from tests.support.runners import Place, running, until
from tests.support.stages import Copier


@pytest.fixture
async def memory(tmp_path: Path) -> Place:
    return await Place.made(MemoryLog(), tmp_path / "state")


class SlowLog(MemoryLog):
    """A log that acknowledges outputs to the watched topics only when the test allows it."""

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
            raise SendFailed("the broker is unreachable")
        await super().send(outputs)


class TwoWaves(Copier):
    """A stage that sends "first" in one wave and "second" in the next."""

    def process(self, records: Sequence[Record]) -> Waves:
        copies = super().process(records).waves[0]
        return Waves([[Output("first", 0, None, b"1")], copies])


@pytest.fixture
async def slow(tmp_path: Path) -> Place:
    made = await Place.made(SlowLog(), tmp_path / "state")
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
    """Without acknowledgements a partition holds three batches: one is sent, one is processed, one waits."""
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


async def test_records_that_arrive_while_a_batch_is_processed_form_one_batch(memory: Place) -> None:
    started, go_on = threading.Event(), threading.Event()
    batches: list[int] = []

    def wait(records: Sequence[Record]) -> None:
        batches.append(len(records))
        started.set()
        assert go_on.wait(10)

    runner = memory.runner(lambda partition: Copier(memory.target, wait))
    async with running(runner):
        await memory.feed(3, partitions=1)
        await until(started.is_set)
        for given in (23, 43, 63):
            await memory.feed(20, partitions=1)
            await until(lambda given=given: sum(each.position for each in runner._workers.values()) == given)  # type: ignore[misc]
        await memory.feed(50, partitions=1)
        await asyncio.sleep(0.3)
        go_on.set()
        assert len(await memory.copied(113)) == 113
    assert batches == [3, 60, 50], "expected at most a hundred records per batch"


async def test_fewer_large_records_are_in_flight(slow: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is in bytes over all partitions, and no partition is blocked forever."""
    monkeypatch.setattr("neardup.runtime.runner.IN_FLIGHT_BYTES", 100_000)
    log = slow_log(slow)
    log.held[slow.target] = asyncio.Event()
    await slow.feed(200, size=10_000)
    runner = slow.runner()
    async with running(runner):
        await until(lambda: slow.target in log.sent)
        await asyncio.sleep(0.3)
        assert 80_000 <= sum(worker.in_flight_bytes for worker in runner._workers.values()) <= 110_000
        log.held[slow.target].set()
        assert len(await slow.copied(200)) == 200
        await until(lambda: not any(worker.in_flight_bytes for worker in runner._workers.values()))


async def test_reading_pauses_after_records_larger_than_expected(slow: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("neardup.runtime.runner.IN_FLIGHT_BYTES", 100_000)
    log = slow_log(slow)
    log.held[slow.target] = asyncio.Event()
    await slow.feed(40, size=200_000)
    runner = slow.runner()
    async with running(runner):
        await until(lambda: slow.target in log.sent)
        await asyncio.sleep(0.3)
        in_flight = sum(worker.in_flight_bytes for worker in runner._workers.values())
        assert in_flight == 200_000 * (100_000 // 2**14), "expected only the records of the first poll"
        log.held[slow.target].set()
        assert len(await slow.copied(40)) == 40


async def test_large_batches_of_different_partitions_are_processed_in_parallel(memory: Place) -> None:
    meet = threading.Barrier(2, timeout=10)
    settings = replace(memory.settings, threads=2)
    await memory.feed(10, size=100_000)
    async with running(memory.runner(lambda partition: Copier(memory.target, lambda _: void(meet.wait())), settings)):
        assert len(await memory.copied(10)) == 10


async def test_readiness_fails_when_a_partition_with_lag_makes_no_progress(memory: Place) -> None:
    go_on = threading.Event()
    runner = memory.runner(lambda partition: Copier(memory.target, lambda _: void(go_on.wait(20))))
    assert runner.not_ready() == "starting"
    async with running(runner):
        await until(lambda: runner.not_ready() is None)
        await asyncio.sleep(1)  # without lag, no progress is expected
        assert runner.not_ready() is None
        await memory.feed(10, partitions=1)
        await until(lambda: runner.not_ready() == f"no progress on {memory.source}-0", seconds=5)
        go_on.set()
        await until(lambda: runner.not_ready() is None, seconds=5)
    assert runner.not_ready() == "stopped"


class Clock:
    """A monotonic clock that the test advances."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self.ahead


class SilentLog(MemoryLog):
    """A log that responds to queries for offsets only while the test allows it."""

    def __init__(self) -> None:
        super().__init__()
        self.answers = asyncio.Event()
        self.answers.set()

    async def consumer(
        self, topic: str, group: str, listener: Listener, *, instance: str = "", patience: float = 0.0
    ) -> MemoryConsumer:
        consumer = await super().consumer(topic, group, listener)
        query = consumer.bounds

        async def bounds(partitions: Collection[Partition]) -> Mapping[Partition, tuple[int, int]]:
            await self.answers.wait()
            return await query(partitions)

        consumer.bounds = bounds  # type: ignore[method-assign]
        return consumer


@pytest.mark.parametrize("runners", [1, 3], ids=["with partitions", "one without partitions"])
async def test_readiness_fails_while_the_log_does_not_respond(runners: int, tmp_path: Path) -> None:
    log, clock = SilentLog(), Clock()
    place = await Place.made(log, tmp_path / "state")
    made = [place.runner(clock=clock) for _ in range(runners)]
    async with running(*made):
        await until(lambda: all(each.not_ready() is None for each in made))
        assert sum(not each.assignment for each in made) == max(0, runners - 2)
        log.answers.clear()
        await asyncio.sleep(0.5)
        clock.ahead += 11
        assert all(str(each.not_ready()).startswith("no contact with the broker for 1") for each in made)
        log.answers.set()
        await until(lambda: all(each.not_ready() is None for each in made), seconds=5)


async def test_an_outage_does_not_count_as_lack_of_progress(tmp_path: Path) -> None:
    log, clock, go_on = SilentLog(), Clock(), threading.Event()
    place = await Place.made(log, tmp_path / "state")
    settings = replace(place.settings, stuck_seconds=30)
    runner = place.runner(lambda _: Copier(place.target, lambda _: void(go_on.wait(20))), settings, clock=clock)
    async with running(runner):
        await place.feed(10, partitions=1)
        await until(lambda: REGISTRY.get_sample_value("neardup_lag_records", lag_of(place)) == 10, seconds=5)
        log.answers.clear()
        await asyncio.sleep(2.5)
        clock.ahead += 100
        assert str(runner.not_ready()).startswith("no contact")
        log.answers.set()
        await until(lambda: not str(runner.not_ready()).startswith("no contact"), seconds=5)
        assert runner.not_ready() is None
        go_on.set()


def lag_of(place: Place) -> dict[str, str]:
    return {"stage": f"copiers-{place.source}", "partition": "0"}


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
