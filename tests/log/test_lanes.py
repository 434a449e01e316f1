"""Tests of lanes: outputs that arrive while a request is in flight are sent together with the next request."""

import asyncio
from typing import Any

import pytest

from neardup.log import Output
from neardup.log.kafka.lanes import Lane


class Batch:
    """A batch with room for three records."""

    def __init__(self) -> None:
        self.values: list[bytes | None] = []

    def append(self, *, timestamp: int | None, key: bytes | None, value: bytes | None, headers: list[Any]) -> object:
        if len(self.values) == 3:
            return None
        self.values.append(value)
        return self


class Producer:
    """A producer that stores its batches and acknowledges them when the test does."""

    def __init__(self) -> None:
        self.sent: list[list[bytes | None]] = []
        self.acknowledgements: list[asyncio.Future[None]] = []

    def create_batch(self) -> Batch:
        return Batch()

    async def send_batch(self, batch: Batch, topic: str, *, partition: int) -> "asyncio.Future[None]":
        assert (topic, partition) == ("t", 5)
        self.sent.append(batch.values)
        self.acknowledgements.append(asyncio.get_running_loop().create_future())
        return self.acknowledgements[-1]


def outputs(*values: bytes) -> list[Output]:
    return [Output("t", 5, None, value) for value in values]


async def settle() -> None:
    await asyncio.sleep(0.02)


async def test_concurrent_senders_share_a_request_and_later_ones_share_the_next() -> None:
    producer = Producer()
    lane = Lane(producer, "t", 5)
    first = [lane.send(outputs(value)) for value in (b"a", b"b")]
    await settle()
    second = [lane.send(outputs(value)) for value in (b"c", b"d")]
    await settle()
    assert producer.sent == [[b"a", b"b"]]
    producer.acknowledgements[0].set_result(None)
    await settle()
    assert all(task.done() for task in first)
    assert not any(task.done() for task in second)
    assert producer.sent == [[b"a", b"b"], [b"c", b"d"]]
    producer.acknowledgements[1].set_result(None)
    await asyncio.gather(*second)


async def test_a_send_ends_when_its_last_batch_is_acknowledged() -> None:
    producer = Producer()
    lane = Lane(producer, "t", 5)
    sending = lane.send(outputs(b"1", b"2", b"3", b"4"))
    await settle()
    producer.acknowledgements[0].set_result(None)
    await settle()
    assert not sending.done()
    producer.acknowledgements[1].set_result(None)
    await sending
    assert producer.sent == [[b"1", b"2", b"3"], [b"4"]]


async def test_no_batch_overtakes_a_failed_one() -> None:
    producer = Producer()
    lane = Lane(producer, "t", 5)
    lost = lane.send(outputs(b"a"))
    await settle()
    behind = lane.send(outputs(b"b"))
    await settle()
    producer.acknowledgements[0].set_exception(OSError("gone"))
    for task in (lost, behind):
        with pytest.raises(OSError, match="gone"):
            await task
    assert producer.sent == [[b"a"]]
    # The lane can be used again.
    later = lane.send(outputs(b"c"))
    await settle()
    producer.acknowledgements[1].set_result(None)
    await later


async def test_a_cancelled_sender_does_not_stop_the_others() -> None:
    producer = Producer()
    lane = Lane(producer, "t", 5)
    gone, stays = (lane.send(outputs(value)) for value in (b"a", b"b"))
    await settle()
    gone.cancel()
    await settle()
    producer.acknowledgements[0].set_result(None)
    await stays
