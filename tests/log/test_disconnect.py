"""Clients of Kafka that do not stop in order: disconnecting from them is bounded and raises nothing."""

import asyncio
import logging
import time

import pytest

from neardup.log.kafka.connecting import disconnect


class Client:
    """A client that waits for a broker in `stop`, and ends with `error` if there is one."""

    def __init__(self, waits: float = 0.0, error: BaseException | None = None, obeys: bool = True) -> None:
        self.waits = waits
        self.error = error
        self.obeys = obeys

    async def stop(self) -> None:
        until = time.monotonic() + self.waits
        while time.monotonic() < until:
            try:
                await asyncio.sleep(until - time.monotonic())
            except asyncio.CancelledError:
                if self.obeys:
                    raise
        if self.error is not None:
            raise self.error


async def test_a_client_that_stops_in_order() -> None:
    assert await disconnect(Client(0.01), 5)


async def test_a_client_that_cancels_itself_does_not_cancel_its_caller() -> None:
    """The fetcher of aiokafka does so when a fetch waits for a dead broker."""
    assert await disconnect(Client(error=asyncio.CancelledError()), 5)


async def test_an_error_of_the_client_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert await disconnect(Client(error=ValueError("broken")), 5)
    assert "did not disconnect in order: ValueError('broken')" in caplog.text


@pytest.mark.parametrize("obeys", [True, False])
async def test_a_client_that_waits_for_its_broker_is_left_behind(obeys: bool) -> None:
    started = time.monotonic()
    assert not await disconnect(Client(waits=3.0, obeys=obeys), 0.1)
    assert time.monotonic() - started < 2
