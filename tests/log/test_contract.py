"""The contract of neardup.log, checked for every implementation. Each test name states a property of the contract."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Collection, Sequence

import pytest

from neardup.errors import LogError, TopicMismatch
from neardup.log import Consumer, Listener, Log, Output, Partition, Record, TopicSpec
from neardup.log.kafka import KafkaLog


class Recorder(Listener):
    """A listener that records its calls and seeks to the given offsets."""

    def __init__(self, seeks: dict[int, int] | None = None) -> None:
        self.mine: set[Partition] = set()
        self.events: list[tuple[str, list[int]]] = []
        self.seeks = seeks or {}
        self.on_revoked: Callable[[], Awaitable[None]] | None = None

    async def assigned(self, consumer: Consumer, partitions: Collection[Partition]) -> None:
        self.mine = set(partitions)
        self.events.append(("assigned", sorted(partition.partition for partition in partitions)))
        for partition in partitions:
            if partition.partition in self.seeks:
                consumer.seek(partition, self.seeks[partition.partition])

    async def revoked(self, consumer: Consumer, partitions: Collection[Partition]) -> None:
        self.events.append(("revoked", sorted(partition.partition for partition in partitions)))
        if self.on_revoked:
            await self.on_revoked()
        self.mine -= set(partitions)


@pytest.fixture
async def topic(log: Log, request: pytest.FixtureRequest) -> str:
    name = f"topic-{uuid.uuid4().hex[:8]}"
    # The mock cluster cannot create topics explicitly: the first request creates one with 4 partitions.
    if not isinstance(log, KafkaLog) or request.getfixturevalue("broker").real:
        assert await log.create_topics([TopicSpec(name, 4)]) == {name: "created"}
    return name


async def join(
    log: Log, topic: str, group: str = "readers", listener: Recorder | None = None
) -> tuple[Consumer, Recorder]:
    recorder = listener or Recorder()
    consumer = await log.consumer(topic, f"{group}-{topic}", recorder)
    return consumer, recorder


async def read(consumer: Consumer, recorder: Recorder, count: int, seconds: float = 20) -> list[Record]:
    """Poll until `count` records have arrived or the time is over."""
    found: list[Record] = []
    async with asyncio.timeout(seconds):
        while len(found) < count:
            for records in (await consumer.poll(recorder.mine, timeout=0.1, max_records=1000)).values():
                found.extend(records)
    return found


def values(records: Sequence[Record], partition: int) -> list[bytes | None]:
    return [record.value for record in records if record.partition == partition]


def numbered(topic: str, partition: int, count: int) -> list[Output]:
    return [Output(topic, partition, b"key", b"%d" % number) for number in range(count)]


async def test_records_of_a_partition_are_read_in_the_order_sent(log: Log, topic: str) -> None:
    await log.send(numbered(topic, 0, 500) + numbered(topic, 1, 500))
    consumer, recorder = await join(log, topic)
    records = await read(consumer, recorder, 1000)
    for partition in (0, 1):
        assert values(records, partition) == [b"%d" % number for number in range(500)]
        offsets = [record.offset for record in records if record.partition == partition]
        assert offsets == list(range(500))
    await consumer.close()


async def test_send_returns_only_when_everything_is_written(log: Log, topic: str) -> None:
    consumer, recorder = await join(log, topic)
    await poll_until(consumer, recorder, lambda: len(recorder.mine) == 4)
    for round_ in range(1, 6):
        await log.send([Output(topic, number % 4, None, bytes(2000)) for number in range(4000)])
        bounds = await consumer.bounds(recorder.mine)
        assert {end for _, end in bounds.values()} == {1000 * round_}
    await consumer.close()


async def test_an_output_larger_than_a_batch_keeps_the_order(log: Log, topic: str) -> None:
    sizes = [10, 700_000, 20, 700_000, 2_000_000, 30]
    await log.send([Output(topic, 2, None, bytes(size)) for size in sizes])
    consumer, recorder = await join(log, topic)
    records = await read(consumer, recorder, len(sizes))
    assert [len(record.value or b"") for record in records] == sizes
    await consumer.close()


async def test_an_explicit_partition_is_honoured(log: Log, topic: str) -> None:
    await log.send([Output(topic, number % 4, b"same key", b"%d" % number) for number in range(40)])
    consumer, recorder = await join(log, topic)
    records = await read(consumer, recorder, 40)
    for record in records:
        assert int(record.value or b"") % 4 == record.partition
    await consumer.close()


async def test_a_key_always_goes_to_the_same_partition(log: Log, topic: str) -> None:
    outputs = [Output(topic, None, b"key %d" % (number % 20), b"%d" % number) for number in range(200)]
    for output in outputs:
        await log.send([output])
    consumer, recorder = await join(log, topic)
    records = await read(consumer, recorder, 200)
    placed: dict[bytes | None, set[int]] = {}
    for record in records:
        placed.setdefault(record.key, set()).add(record.partition)
    assert all(len(partitions) == 1 for partitions in placed.values())
    assert len(set.union(*placed.values())) > 1
    await consumer.close()


async def test_key_headers_and_timestamp_arrive(log: Log, topic: str) -> None:
    await log.send([Output(topic, 0, b"k", b"v", [("content-type", b"text/html")]), Output(topic, 0, None, b"w")])
    consumer, recorder = await join(log, topic)
    first, second = await read(consumer, recorder, 2)
    assert (first.key, first.value, tuple(first.headers)) == (b"k", b"v", (("content-type", b"text/html"),))
    assert (second.key, second.value, tuple(second.headers)) == (None, b"w", ())
    assert first.timestamp > 1_600_000_000_000
    await consumer.close()


async def test_replay_from_an_offset(log: Log, topic: str) -> None:
    await log.send(numbered(topic, 0, 100))
    consumer, recorder = await join(log, topic)
    assert len(await read(consumer, recorder, 100)) == 100
    consumer.seek(Partition(topic, 0), 40)
    again = await read(consumer, recorder, 60)
    assert [record.offset for record in again] == list(range(40, 100))
    await consumer.close()


async def test_a_seek_during_assignment_sets_the_start_of_reading(log: Log, topic: str) -> None:
    await log.send(numbered(topic, 0, 100) + numbered(topic, 1, 10))
    recorder = Recorder(seeks={0: 90})
    consumer, _ = await join(log, topic, listener=recorder)
    records = await read(consumer, recorder, 20)
    assert [record.offset for record in records if record.partition == 0] == list(range(90, 100))
    assert [record.offset for record in records if record.partition == 1] == list(range(10))
    await consumer.close()


async def test_a_group_resumes_where_it_committed(log: Log, topic: str) -> None:
    partition = Partition(topic, 0)
    await log.send(numbered(topic, 0, 100))
    consumer, recorder = await join(log, topic)
    await read(consumer, recorder, 100)
    assert await consumer.committed(partition) is None
    await consumer.commit({partition: 30})
    assert await consumer.committed(partition) == 30
    await consumer.close()
    consumer, recorder = await join(log, topic)
    records = await read(consumer, recorder, 70)
    assert [record.offset for record in records] == list(range(30, 100))
    await consumer.close()


async def test_groups_have_separate_commits(log: Log, topic: str) -> None:
    await log.send(numbered(topic, 0, 10))
    for group in ("one", "two"):
        consumer, recorder = await join(log, topic, group)
        assert len(await read(consumer, recorder, 10)) == 10
        await consumer.commit({Partition(topic, 0): 10})
        await consumer.close()


@pytest.mark.real_broker
async def test_two_members_share_the_partitions_and_rebalance(log: Log, topic: str) -> None:
    first, mine = await join(log, topic)
    await poll_until(first, mine, lambda: len(mine.mine) == 4)
    second, yours = await join(log, topic)
    await asyncio.gather(
        poll_until(first, mine, lambda: len(mine.mine) == 2),
        poll_until(second, yours, lambda: len(yours.mine) == 2),
    )
    assert not mine.mine & yours.mine
    assert mine.events[:2] == [("assigned", [0, 1, 2, 3]), ("revoked", [0, 1, 2, 3])]
    await second.close()
    await poll_until(first, mine, lambda: len(mine.mine) == 4)
    await first.close()
    assert not mine.mine


@pytest.mark.real_broker
async def test_offsets_may_be_committed_while_partitions_are_revoked(log: Log, topic: str) -> None:
    await log.send(numbered(topic, 0, 50))
    first, mine = await join(log, topic)
    await read(first, mine, 50)

    async def commit() -> None:
        await first.commit({Partition(topic, 0): 50})

    mine.on_revoked = commit
    second, yours = await join(log, topic)
    done = asyncio.Event()

    async def keep_polling(consumer: Consumer, recorder: Recorder) -> list[Record]:
        found: list[Record] = []
        while not done.is_set():
            for records in (await consumer.poll(recorder.mine, timeout=0.1, max_records=100)).values():
                found.extend(records)
        return found

    polling = [asyncio.create_task(keep_polling(first, mine)), asyncio.create_task(keep_polling(second, yours))]
    async with asyncio.timeout(20):
        while not (len(mine.mine) == 2 and len(yours.mine) == 2):
            await asyncio.sleep(0.05)
    await asyncio.sleep(0.5)
    done.set()
    repeated = [record for records in await asyncio.gather(*polling) for record in records]
    assert repeated == []
    mine.on_revoked = None
    await first.close()
    await second.close()


async def test_an_offset_of_a_lost_partition_cannot_be_committed(log: Log, topic: str) -> None:
    consumer, recorder = await join(log, topic)
    await poll_until(consumer, recorder, lambda: len(recorder.mine) == 4)
    await consumer.close()
    with pytest.raises(LogError):
        await consumer.commit({Partition(topic, 0): 1})


async def test_a_partition_that_is_not_polled_keeps_its_records(log: Log, topic: str) -> None:
    """Back-pressure: the reader chooses the partitions of each poll."""
    consumer, recorder = await join(log, topic)
    await poll_until(consumer, recorder, lambda: len(recorder.mine) == 4)
    await log.send(numbered(topic, 0, 2000) + numbered(topic, 1, 20))
    wanted = {Partition(topic, 1)}
    found: list[Record] = []
    for _ in range(10):
        for partition, records in (await consumer.poll(wanted, timeout=0.1, max_records=100)).items():
            assert partition in wanted
            found.extend(records)
    assert len(found) == 20
    assert await consumer.poll(set(), timeout=0.1, max_records=100) == {}
    rest = await read(consumer, recorder, 2000)
    assert values(rest, 0) == [b"%d" % number for number in range(2000)]
    await consumer.close()


async def test_poll_returns_at_most_the_requested_number_of_records(log: Log, topic: str) -> None:
    await log.send(numbered(topic, 0, 100) + numbered(topic, 1, 100))
    consumer, recorder = await join(log, topic)
    found: list[Record] = []
    while len(found) < 200:
        polled = await consumer.poll(recorder.mine, timeout=0.5, max_records=7)
        assert sum(map(len, polled.values())) <= 7
        for records in polled.values():
            found.extend(records)
    await consumer.close()


async def test_bounds_are_the_oldest_and_the_next_offset(log: Log, topic: str) -> None:
    await log.send(numbered(topic, 3, 12))
    consumer, recorder = await join(log, topic)
    await poll_until(consumer, recorder, lambda: len(recorder.mine) == 4)
    bounds = await consumer.bounds([Partition(topic, 3), Partition(topic, 0)])
    assert bounds == {Partition(topic, 3): (0, 12), Partition(topic, 0): (0, 0)}
    await consumer.close()


@pytest.mark.real_broker
async def test_bounds_are_current_and_need_no_assignment(log: Log, topic: str) -> None:
    first, mine = await join(log, topic)
    second, yours = await join(log, topic)
    await asyncio.gather(
        poll_until(first, mine, lambda: len(mine.mine) == 2),
        poll_until(second, yours, lambda: len(yours.mine) == 2),
    )
    for count in (1, 2, 3):
        await log.send([Output(topic, number, None, b"value") for number in range(4)])
        for consumer in (first, second):
            bounds = await consumer.bounds([Partition(topic, number) for number in range(4)])
            assert set(bounds.values()) == {(0, count)}
    await first.close()
    await second.close()


async def test_an_error_in_the_listener_reaches_the_poller(log: Log, topic: str) -> None:
    class Broken(Recorder):
        async def assigned(self, consumer: Consumer, partitions: Collection[Partition]) -> None:
            raise RuntimeError("cannot open the state")

    consumer, recorder = await join(log, topic, listener=Broken())
    with pytest.raises(RuntimeError, match="cannot open the state"):
        await read(consumer, recorder, 1)
    await consumer.close()


@pytest.mark.real_broker
async def test_topics_are_created_once_and_differences_are_reported(log: Log, topic: str) -> None:
    assert await log.create_topics([TopicSpec(topic, 4)]) == {topic: "exists"}
    report = await log.create_topics([TopicSpec(topic, 6)])
    assert "4 partitions, expected 6" in report[topic]
    assert await log.partitions(topic) == 4


@pytest.mark.real_broker
async def test_a_topic_that_does_not_exist_is_a_clear_error(log: Log) -> None:
    with pytest.raises(TopicMismatch, match=r"no-such-topic does not exist; create it"):
        await log.partitions("no-such-topic")


async def poll_until(consumer: Consumer, recorder: Recorder, reached: Callable[[], bool], seconds: float = 20) -> None:
    async with asyncio.timeout(seconds):
        while not reached():
            await consumer.poll(recorder.mine, timeout=0.1, max_records=1000)
