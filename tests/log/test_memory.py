"""Tests of the in-process log beyond the contract: partitions that begin at a later offset, and trimmed records."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.errors import LogGap
from neardup.log import Output, Partition, TopicSpec
from neardup.log.memory import MemoryLog
from tests.log.test_contract import Recorder, join, read

TOPIC = "t"
HERE = Partition(TOPIC, 0)


async def begun(first: dict[str, int] | None = None) -> MemoryLog:
    log = MemoryLog(first)
    await log.create_topics([TopicSpec(TOPIC, 2)])
    return log


async def send(log: MemoryLog, numbers: range) -> None:
    await log.send([Output(TOPIC, 0, None, b"%d" % number) for number in numbers])


def offsets(log: MemoryLog, start: int, limit: int = 10_000) -> list[int]:
    """Return the offsets of the records from `start`. The value of every record must be its offset."""
    found = log.read(HERE, start, limit)
    assert [record.value for record in found] == [b"%d" % record.offset for record in found]
    return [record.offset for record in found]


# First offset of a partition


async def test_reading_before_the_first_offset_starts_at_the_first_record() -> None:
    log = await begun({TOPIC: 100})
    await send(log, range(100, 103))
    for start in (0, 99, 100):
        assert offsets(log, start) == [100, 101, 102]
    assert offsets(log, 0, limit=1) == [100]
    assert offsets(log, 102) == [102]
    assert offsets(log, 103) == []


async def test_the_first_offset_applies_to_all_partitions_of_its_topic_only() -> None:
    log = await begun({TOPIC: 100, "another": 7})
    await log.create_topics([TopicSpec("third", 1)])
    assert [log.end(Partition(TOPIC, number)) for number in (0, 1)] == [100, 100]
    assert log.end(Partition("third", 0)) == 0
    assert log.read(HERE, 0, 10) == []


@pytest.mark.parametrize("start", [None, 0, 40, 100])
async def test_a_consumer_with_an_offset_of_an_earlier_process_starts_at_the_first_record(start: int | None) -> None:
    log = await begun({TOPIC: 100})
    await send(log, range(100, 110))
    consumer, recorder = await join(log, TOPIC, listener=Recorder({} if start is None else {0: start}))
    assert [record.offset for record in await read(consumer, recorder, 10)] == list(range(100, 110))
    await consumer.close()


async def test_a_state_beyond_the_end_of_the_log_is_a_gap() -> None:
    log = await begun({TOPIC: 100})
    consumer, recorder = await join(log, TOPIC, listener=Recorder({0: 101}))
    with pytest.raises(LogGap, match="t-0 ends at offset 100, but the state has reached 101"):
        await read(consumer, recorder, 1)
    await consumer.close()


# Trimming


async def test_reading_trimmed_records_is_a_gap() -> None:
    log = await begun()
    await send(log, range(200))
    log.trim(HERE, 150)
    for start in (0, 149):
        with pytest.raises(LogGap, match=f"t-0: expected to read offset {start}, records before 150 are trimmed"):
            log.read(HERE, start, 10)
    assert offsets(log, 150) == list(range(150, 200))


async def test_a_consumer_of_trimmed_records_gets_a_gap() -> None:
    log = await begun()
    await send(log, range(200))
    log.trim(HERE, 150)
    consumer, recorder = await join(log, TOPIC, listener=Recorder({0: 149}))
    with pytest.raises(LogGap, match="expected to read offset 149"):
        await read(consumer, recorder, 1)
    await consumer.close()


async def test_trimming_does_not_affect_other_partitions() -> None:
    log = await begun()
    await log.send([Output(TOPIC, number % 2, None, b"") for number in range(400)])
    log.trim(HERE, 200)
    assert len(log.read(Partition(TOPIC, 1), 0, 1000)) == 200


async def test_offsets_continue_after_everything_was_trimmed() -> None:
    log = await begun({TOPIC: 1000})
    await send(log, range(1000, 1100))
    log.trim(HERE, 5000)
    assert log.end(HERE) == 1100
    await send(log, range(1100, 1102))
    assert offsets(log, 1100) == [1100, 1101]
    # Records before the first offset were lost with an earlier process, but the trimmed ones belong to this process.
    with pytest.raises(LogGap):
        log.read(HERE, 0, 10)


async def test_trimming_few_records_does_not_copy_the_others() -> None:
    log = await begun()
    await send(log, range(1000))
    log.trim(HERE, 63)
    log.trim(HERE, 499)
    assert len(offsets(log, 0)) == 1000
    log.trim(HERE, 500)
    assert len(log._of(HERE).records) == 500


@given(
    first=st.sampled_from([0, 1000]),
    steps=st.lists(st.tuples(st.integers(0, 150), st.integers(0, 700)), max_size=12),
)
def test_trimming_keeps_all_records_that_are_still_needed(first: int, steps: list[tuple[int, int]]) -> None:
    async def run() -> None:
        log = await begun({TOPIC: first})
        end = needed = first
        for count, trimmed in steps:
            await send(log, range(end, end + count))
            end += count
            log.trim(HERE, first + trimmed)
            needed = max(needed, min(first + trimmed, end))
            assert log.end(HERE) == end
            for start in (needed, (needed + end) // 2, end):
                assert offsets(log, start) == list(range(start, end))
            # At most half of the held records, or 64 of them, may be trimmed ones.
            assert len(log._of(HERE).records) <= max(2 * (end - needed), end - needed + 64)

    asyncio.run(run())
