"""Tests of the guarantees of the runner while the state of a partition is being written."""

from dataclasses import replace
from pathlib import Path

import pytest

from neardup.errors import LogError, StateUnavailable
from neardup.log import Log, Partition
from neardup.log.memory import MemoryLog
from neardup.runtime.stage import Stage
from neardup.settings import Settings
from tests.support.runners import Place, running, sorted_values, until
from tests.support.stages import Counter, SlowToSave


class SlowPlace(Place):
    """A place with stages whose state is written only when the test allows it."""

    def __init__(self, log: Log, settings: Settings) -> None:
        # One thread for the records of both partitions, and one thread for saving.
        super().__init__(log, replace(settings, threads=1))
        self.slow: list[SlowToSave] = []

    def stage(self, partition: Partition) -> Stage:
        self.slow.append(SlowToSave(self.target))
        return self.slow[-1]

    def both(self, event: str) -> bool:
        """Return True if the event happened to the stages of both partitions."""
        return [event in stage.events for stage in self.slow] == [True, True]


@pytest.fixture
async def place(tmp_path: Path) -> SlowPlace:
    return await SlowPlace.made(MemoryLog(), tmp_path / "state")


def committed_now(place: SlowPlace) -> dict[int, int | None]:
    assert isinstance(place.log, MemoryLog)
    group = f"copiers-{place.source}"
    return {number: place.log.committed(group, Partition(place.source, number)) for number in (0, 1)}


def let_save(place: SlowPlace) -> None:
    for stage in place.slow:
        stage.may_save.set()


async def test_records_are_processed_while_a_state_is_written_and_the_commit_waits_for_it(place: SlowPlace) -> None:
    await place.feed(20)
    async with running(place.runner()):
        await until(lambda: place.both("freeze 10"))
        await place.feed(20, start=20)
        records = await place.copied(40)
        assert not any("saved" in event for stage in place.slow for event in stage.events)
        assert committed_now(place) == {0: None, 1: None}
        let_save(place)
        await until(lambda: place.both("saved 20"))
    assert sorted_values(records) == list(range(40))
    for stage in place.slow:
        saving = [event for event in stage.events if "freeze" in event or "saved" in event]
        assert saving == ["freeze 10", "saved 10", "freeze 20", "saved 20"]
    assert committed_now(place) == {0: 20, 1: 20}


async def test_a_clean_stop_waits_until_the_state_is_written(place: SlowPlace) -> None:
    await place.feed(20)
    async with running(place.runner()):
        await until(lambda: place.both("freeze 10"))
        await place.feed(20, start=20)
        await place.copied(40)
        let_save(place)
    assert committed_now(place) == {0: 20, 1: 20}
    assert all(stage.events[-1] == "close" for stage in place.slow)


async def test_a_stage_is_closed_only_after_its_state_is_written(place: SlowPlace) -> None:
    await place.feed(20)
    runner = place.runner()

    async def abandoned() -> None:
        async with running(runner):
            await until(lambda: place.both("freeze 10"))
            runner.abandon()
            let_save(place)

    with pytest.raises(LogError, match="abandoned"):
        await abandoned()
    for stage in place.slow:
        assert stage.events[-1] == "close"
        assert stage.events[-2:] == ["saved 10", "close"] or "saved 10" not in stage.events
    assert committed_now(place) == {0: None, 1: None}


async def test_a_state_that_cannot_be_written_stops_the_worker(place: SlowPlace) -> None:
    await place.feed(20)

    async def run() -> None:
        async with running(place.runner()):
            await until(lambda: place.both("freeze 10"))
            for stage in place.slow:
                stage.file.mkdir()  # blocks the path of the file to write
            let_save(place)

    with pytest.raises(StateUnavailable, match="expected to read and write the state"):
        await run()
    assert committed_now(place) == {0: None, 1: None}


class FullAfterTwo(Counter):
    """A counter that reports itself full from the second record on."""

    @property
    def is_full(self) -> bool:
        return self._next >= 2


class FullPlace(Place):
    """A place with such stages and a checkpoint interval that the test does not reach."""

    def __init__(self, log: Log, settings: Settings) -> None:
        super().__init__(log, replace(settings, checkpoint_seconds=3600))
        self.full: list[FullAfterTwo] = []

    def stage(self, partition: Partition) -> Stage:
        self.full.append(FullAfterTwo(self.target))
        return self.full[-1]


async def test_a_full_stage_is_saved_before_the_interval_ends(tmp_path: Path) -> None:
    place = await FullPlace.made(MemoryLog(), tmp_path / "state")
    async with running(place.runner()):
        await place.feed(2)  # one record per partition
        await place.copied(2)
        assert not any("checkpoint" in event for stage in place.full for event in stage.events)
        await place.feed(2, start=2)
        await until(lambda: all("checkpoint 2" in stage.events for stage in place.full))
