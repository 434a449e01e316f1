from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.errors import CorruptState
from neardup.log import Output, Partition, TopicSpec
from neardup.log.memory import MemoryLog, MemoryRecord

TOPIC = "some-topic"
FIRST = Partition(TOPIC, 0)
SECOND = Partition(TOPIC, 1)

OUTPUTS = [
    Output(TOPIC, 0, b"key", b"value", (("h", b"1"), ("h", b"\xff"))),
    Output(TOPIC, 0, None, b""),
    Output(TOPIC, 1, b"", None),
    Output(TOPIC, 0, b"k" * 300, b"v" * 70_000),
]


@asynccontextmanager
async def started(directory: Path, clock: Callable[[], float] = lambda: 12.5) -> AsyncIterator[MemoryLog]:
    log = MemoryLog(directory, clock=clock)
    await log.start()
    try:
        yield log
    finally:
        await log.stop()


async def start_and_stop(directory: Path) -> MemoryLog:
    """Load a log and release its files, also when loading fails."""
    log = MemoryLog(directory)
    try:
        await log.start()
    finally:
        await log.stop()
    return log


async def fill(directory: Path, values: list[bytes]) -> Path:
    """A log with these records in one partition; returns the partition's file."""
    async with started(directory) as log:
        await log.create_topics([TopicSpec(TOPIC, 1)])
        await log.send([Output(TOPIC, 0, b"key", value) for value in values])
    return directory / f"{FIRST}.log"


def values_of(log: MemoryLog, partition: Partition = FIRST) -> list[bytes | None]:
    return [record.value for record in log.read(partition, 0, 1000)]


async def test_records_are_there_after_a_restart_with_all_that_they_carried(tmp_path: Path) -> None:
    async with started(tmp_path) as log:
        await log.create_topics([TopicSpec(TOPIC, 2)])
        await log.send(OUTPUTS)
        before = [list(log.read(partition, 0, 100)) for partition in (FIRST, SECOND)]
    async with started(tmp_path, clock=lambda: 99) as log:
        assert [list(log.read(partition, 0, 100)) for partition in (FIRST, SECOND)] == before
        assert log.read(FIRST, 0, 1) == [
            MemoryRecord(TOPIC, 0, 0, 12_500, b"key", b"value", (("h", b"1"), ("h", b"\xff")))
        ]
        assert log.read(SECOND, 0, 1) == [MemoryRecord(TOPIC, 1, 0, 12_500, b"", None, ())]


async def test_appending_goes_on_after_a_restart(tmp_path: Path) -> None:
    await fill(tmp_path, [b"0", b"1"])
    for number in (2, 3):
        async with started(tmp_path, clock=lambda: float(number)) as log:  # noqa: B023
            assert log.end(FIRST) == number
            await log.send([Output(TOPIC, 0, None, str(number).encode())])
    async with started(tmp_path) as log:
        assert values_of(log) == [b"0", b"1", b"2", b"3"]
        assert [record.offset for record in log.read(FIRST, 0, 9)] == [0, 1, 2, 3]
        assert [record.timestamp for record in log.read(FIRST, 0, 9)] == [12_500, 12_500, 2_000, 3_000]


async def test_the_same_log_can_be_stopped_and_started(tmp_path: Path) -> None:
    log = MemoryLog(tmp_path)
    await log.start()
    await log.create_topics([TopicSpec(TOPIC, 1)])
    await log.send([Output(TOPIC, 0, None, b"0")])
    await log.stop()
    await log.start()
    await log.send([Output(TOPIC, 0, None, b"1")])
    await log.stop()
    async with started(tmp_path) as other:
        assert values_of(other) == [b"0", b"1"]


async def test_acknowledged_records_survive_without_a_stop(tmp_path: Path) -> None:
    log = MemoryLog(tmp_path)
    await log.start()
    await log.create_topics([TopicSpec(TOPIC, 2)])
    await log.send(OUTPUTS)
    try:
        async with started(tmp_path) as other:  # as if the first process had been killed
            assert values_of(other) == values_of(log)
            assert values_of(other, SECOND) == [None]
    finally:
        await log.stop()


async def test_topics_without_records_are_there_after_a_restart(tmp_path: Path) -> None:
    specs = [TopicSpec("a", 1), TopicSpec("a-1", 12), TopicSpec("b.c_d", 3)]
    async with started(tmp_path) as log:
        await log.create_topics(specs)
    async with started(tmp_path) as log:
        assert [await log.partitions(spec.name) for spec in specs] == [1, 12, 3]
        assert set((await log.create_topics(specs)).values()) == {"exists"}


async def test_committed_offsets_are_there_after_a_restart(tmp_path: Path) -> None:
    async with started(tmp_path) as log:
        await log.create_topics([TopicSpec(TOPIC, 2)])
        await log.send(OUTPUTS)
        log.commit("one", {FIRST: 1})
        log.commit("one", {FIRST: 2, SECOND: 1})
        log.commit("two", {FIRST: 3})
    async with started(tmp_path) as log:
        assert log.committed("one", FIRST) == 2
        assert log.committed("one", SECOND) == 1
        assert log.committed("two", FIRST) == 3
        assert log.committed("two", SECOND) is None
        assert log.committed("three", FIRST) is None


async def test_a_log_without_a_directory_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    log = MemoryLog()
    await log.start()
    await log.create_topics([TopicSpec(TOPIC, 1)])
    await log.send([Output(TOPIC, 0, None, b"0")])
    log.commit("one", {FIRST: 1})
    await log.stop()
    assert list(tmp_path.iterdir()) == []


async def test_timestamps_are_milliseconds_of_the_given_clock(tmp_path: Path) -> None:
    now = [1.0]
    async with started(tmp_path, clock=lambda: now[0]) as log:
        await log.create_topics([TopicSpec(TOPIC, 1)])
        await log.send([Output(TOPIC, 0, None, b"a"), Output(TOPIC, 0, None, b"b")])
        now[0] = 2.3456
        await log.send([Output(TOPIC, 0, None, b"c")])
        assert [record.timestamp for record in log.read(FIRST, 0, 9)] == [1000, 1000, 2345]


async def test_a_torn_tail_is_dropped_wherever_it_was_cut_and_appending_goes_on(tmp_path: Path) -> None:
    file = await fill(tmp_path / "whole", [b"first", b"second"])
    whole = file.read_bytes()
    one = (await fill(tmp_path / "one", [b"first"])).read_bytes()
    assert whole.startswith(one)
    for length in range(len(one), len(whole)):
        file.write_bytes(whole[:length])
        async with started(file.parent) as log:
            assert values_of(log) == [b"first"]
            await log.send([Output(TOPIC, 0, None, b"third")])
        async with started(file.parent) as log:
            assert values_of(log) == [b"first", b"third"]


async def test_a_file_cut_inside_its_first_record_is_an_empty_partition(tmp_path: Path) -> None:
    file = await fill(tmp_path, [b"first"])
    file.write_bytes(file.read_bytes()[:-1])
    async with started(tmp_path) as log:
        assert log.end(FIRST) == 0
    assert file.read_bytes() == b""


@pytest.mark.parametrize("bit", [0x01, 0x80])
async def test_a_flipped_bit_anywhere_is_corrupt_state(tmp_path: Path, bit: int) -> None:
    file = await fill(tmp_path, [b"first", b"second", b"third"])
    whole = file.read_bytes()
    unnoticed = []
    for place in range(len(whole)):
        altered = bytearray(whole)
        altered[place] ^= bit
        file.write_bytes(altered)
        try:
            await start_and_stop(tmp_path)
        except CorruptState:
            continue
        unnoticed.append(place)
    assert unnoticed == []  # of a frame, bytes 0 to 3 are the length and 4 to 7 the checksum


async def test_corrupt_state_says_which_record_of_which_file(tmp_path: Path) -> None:
    file = await fill(tmp_path, [b"first", b"second"])
    file.write_bytes(file.read_bytes().replace(b"second", b"sec0nd"))
    with pytest.raises(CorruptState, match=r"some-topic-0\.log: record 1 has checksum [0-9a-f]{8}, expected"):
        await start_and_stop(tmp_path)


async def test_a_refused_file_is_left_as_it_is(tmp_path: Path) -> None:
    file = await fill(tmp_path, [b"first", b"second"])
    altered = file.read_bytes().replace(b"first", b"fir5t")
    file.write_bytes(altered)
    with pytest.raises(CorruptState):
        await start_and_stop(tmp_path)
    assert file.read_bytes() == altered


async def test_a_tail_of_zeros_is_dropped_or_corrupt_state(tmp_path: Path) -> None:
    # What a file system may leave after a power failure: the length was written, the content was not.
    file = await fill(tmp_path, [b"first"])
    file.write_bytes(file.read_bytes() + bytes(64))
    try:
        log = await start_and_stop(tmp_path)
    except CorruptState:
        return
    assert values_of(log) == [b"first"]


async def test_a_missing_partition_file_is_corrupt_state(tmp_path: Path) -> None:
    async with started(tmp_path) as log:
        await log.create_topics([TopicSpec(TOPIC, 3)])
    (tmp_path / f"{SECOND}.log").unlink()
    with pytest.raises(CorruptState):
        await start_and_stop(tmp_path)


@pytest.mark.parametrize("content", [b"", b"\xc1", b"\x81\xa3one", b"\x93\x01\x02\x03"])
async def test_altered_offsets_are_corrupt_state(tmp_path: Path, content: bytes) -> None:
    async with started(tmp_path) as log:
        await log.create_topics([TopicSpec(TOPIC, 1)])
        log.commit("one", {FIRST: 1})
    (tmp_path / "groups.msgpack").write_bytes(content)
    with pytest.raises(CorruptState):
        await start_and_stop(tmp_path)


outputs = st.builds(
    Output,
    topic=st.just(TOPIC),
    partition=st.none() | st.integers(0, 1),
    key=st.none() | st.binary(max_size=9),
    value=st.none() | st.binary(max_size=30),
    headers=st.lists(st.tuples(st.text(st.characters(exclude_categories=["Cs"])), st.binary()), max_size=2).map(tuple),
)


@given(runs=st.lists(st.lists(outputs, max_size=6), min_size=1, max_size=4))
async def test_over_any_restarts_a_log_with_a_directory_is_like_one_without_restarts(
    tmp_path_factory: pytest.TempPathFactory, runs: list[list[Output]]
) -> None:
    directory = tmp_path_factory.mktemp("log")
    # Which partition a record without a key goes to is not promised over restarts.
    placed = [[each._replace(partition=each.partition or 0) if each.key is None else each for each in r] for r in runs]
    steady = MemoryLog(clock=lambda: 12.5)
    await steady.create_topics([TopicSpec(TOPIC, 2)])
    async with started(directory) as log:
        await log.create_topics([TopicSpec(TOPIC, 2)])
    for run in placed:
        await steady.send(run)
        async with started(directory) as log:
            await log.send(run)
    async with started(directory) as log:
        for partition in (FIRST, SECOND):
            assert log.read(partition, 0, 1000) == steady.read(partition, 0, 1000)
