"""Tests of the guarantees of the runner, on every log."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from neardup.errors import LogGap, StateUnavailable
from neardup.log import Log, Output, Partition, Record
from neardup.log.memory import MemoryLog
from neardup.messages import dead_letters
from neardup.runtime.runner import Phase
from neardup.runtime.stage import Stage
from tests.support.runners import Place, running, sorted_values, until
from tests.support.stages import Copier

pytestmark = pytest.mark.real_broker  # only the Kafka log needs it, because the topics of the stages must be created


@pytest.fixture
async def place(log: Log, tmp_path: Path) -> Place:
    return await Place.made(log, tmp_path / "state")


@pytest.fixture
async def memory(tmp_path: Path) -> Place:
    return await Place.made(MemoryLog(), tmp_path / "state")


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


async def test_an_idle_stage_is_checkpointed_by_time(place: Place) -> None:
    async with running(place.runner()):
        await place.feed(10)
        await place.copied(10)
        await until(lambda: sum("checkpoint 5" in stage.events for stage in place.stages) == 2)


async def test_an_incomplete_checkpoint_is_repeated_without_new_records(memory: Place) -> None:
    class Slow(Copier):
        """A copier whose checkpoint covers its records only at the third attempt."""

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


def both_saved(place: Place, offset: int) -> bool:
    return all(f"checkpoint {offset}" in stage.events for stage in place.stages)


async def test_checkpoints_are_triggered_by_the_number_of_records(memory: Place) -> None:
    settings = replace(memory.settings, checkpoint_seconds=3600, checkpoint_records=100, poll_records=50)
    async with running(memory.runner(settings=settings)):
        for reached in (100, 200, 300, 400):
            await memory.feed(200)
            await until(partial(both_saved, memory, reached))
    assert all(sum("checkpoint" in event for event in stage.events) == 4 for stage in memory.stages)


async def test_a_bad_record_goes_to_dead_letters_and_the_others_are_processed(place: Place) -> None:
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


async def test_a_stage_with_state_chooses_the_start_offset(place: Place) -> None:
    await place.feed(100)
    async with running(place.runner(place.counter)):
        await place.copied(100)
    # The state of one partition is lost, and that of the other is older than the commit.
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


async def test_a_partition_that_returns_after_a_rebalance_gets_a_new_stage(place: Place) -> None:
    first, second = place.runner(), place.runner()
    async with running(first):
        await until(lambda: len(first.assignment) == 2)
        async with running(second):
            await until(lambda: len(second.assignment) == 1)
        await until(lambda: len(first.assignment) == 2)
        # Two partitions of the first runner, one of the second, and one that moved back to the first.
        assert sum(stage.events.count("open") for stage in place.stages) == 4
    assert all(stage.events[-1] == "close" for stage in place.stages)


async def test_an_unexpected_error_stops_the_worker_with_nothing_committed(place: Place) -> None:
    def explode(records: Sequence[Record]) -> None:
        if any(record.value == b"33" for record in records):
            time.sleep(0.5)  # by now the other partition has processed records that it could commit
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
        records = await place.copied(150)  # the fifty records of the other partition are sent twice
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
