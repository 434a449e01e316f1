"""A crawler ten times faster than the services: the backlog stays in Kafka, not in memory, and is processed later.

`make test` runs this for a few seconds, `make faults` for two minutes (NEARDUP_TEST_FLOOD_SECONDS).
"""

import asyncio
import os
import signal
import time
from contextlib import suppress
from dataclasses import replace

import pytest

from tests.faults.following import Follower
from tests.faults.load import SteadyLoad, sampled
from tests.faults.results import record
from tests.faults.vitals import MEGABYTE, bounds, peak_memory, take_vitals
from tests.services.workers import Deployment, Worker

pytestmark = [pytest.mark.kafka, pytest.mark.real_broker, pytest.mark.faults]

SECONDS = float(os.environ.get("NEARDUP_TEST_FLOOD_SECONDS", "4"))
RATE = 200.0
"""Pages per second."""
TIMES = 10
SESSION_SECONDS = 30.0
"""Session timeout: a throttled worker runs for short moments and must still send its heartbeats in time."""


async def test_the_backlog_of_a_fast_crawler_stays_in_kafka(deployment: Deployment) -> None:
    settings = deployment.settings = replace(deployment.settings, session_timeout_seconds=SESSION_SECONDS)
    assert deployment.neardup("topics", "create").returncode == 0
    workers = {name: deployment.start("neardup", "worker", name) for name in ("featurizer", "shard", "aggregator")}
    for worker in workers.values():
        await asyncio.to_thread(worker.await_ready)
    before = take_vitals(workers, deployment.directory)
    load, follower = SteadyLoad(settings, RATE, sampled(41), keep_pages=False), Follower(settings)
    flooding = asyncio.create_task(load.run())
    following = asyncio.create_task(follower.run())
    try:
        started = time.monotonic()
        while time.monotonic() - started < SECONDS:
            await _slow(list(workers.values()), load, follower)
        backlog = len(follower.unsettled(len(load.sent_at)))
        load.stop()
        await flooding
        ended = time.monotonic()
        while follower.unsettled(len(load.sent_at)):
            assert time.monotonic() - ended < 30 + 10 * SECONDS, f"{take_vitals(workers, deployment.directory)}"
            await asyncio.sleep(0.2)
        drained = time.monotonic() - ended
        after = await asyncio.to_thread(take_vitals, workers, deployment.directory)
    finally:
        for task in (flooding, following):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
    most = {name: peak_memory(worker) // MEGABYTE for name, worker in workers.items()}
    record(
        "a crawler ten times faster than the services",
        seconds=SECONDS,
        pages=len(load.sent_at),
        backlog=backlog,
        drained_s=round(drained, 1),
        **{f"{name}_mb": megabytes for name, megabytes in most.items()},
    )
    assert backlog > 0.8 * len(load.sent_at), "expected that the services fall behind"
    assert all(megabytes < bounds(settings)[name] for name, megabytes in most.items()), most
    # No worker was declared dead, so no partitions were reassigned.
    assert {name: each.rebalances for name, each in after.items()} == {
        name: each.rebalances for name, each in before.items()
    }
    assert not follower.dead


async def _slow(workers: list[Worker], load: SteadyLoad, follower: Follower) -> None:
    """Run the services for a moment, then pause them until the crawler is ten times ahead, as cpulimit does."""
    await asyncio.sleep(0.02)
    for worker in workers:
        worker.process.send_signal(signal.SIGSTOP)
    ahead = (len(follower.first_at) * TIMES - len(load.sent_at)) / RATE
    # The pause is too short for the session timeout.
    await asyncio.sleep(min(max(ahead, 0.2), SESSION_SECONDS / 10))
    for worker in workers:
        worker.process.send_signal(signal.SIGCONT)
