"""Tests that closed objects release their memory, because a worker gains and loses partitions for months."""

import asyncio
import ctypes
import gc
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from neardup.deployment.deployment import Deployment, make_runner
from neardup.deployment.topics import topic_specs
from neardup.log.memory import MemoryLog
from neardup.runtime.runner import Runner
from neardup.runtime.stage import Stage
from neardup.settings import Settings
from tests.simulation.simulate import simulate

BLOCKS_PER_ROUND = 150
"""Python memory blocks for lazy initialization. A stage that is not released has several thousands."""
NATIVE_BYTES = 16 * 2**20
"""Bytes of the process over all rounds. A RocksDB instance that stays open has several hundred thousand."""


def resident() -> int:
    """Return the resident bytes after free memory was returned to the system."""
    gc.collect()
    if sys.platform == "linux":
        ctypes.CDLL(None).malloc_trim(0)
    found = re.search(r"VmRSS:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found
    return int(found[1]) * 1024


def blocks() -> int:
    gc.collect()
    return sys.getallocatedblocks()


def assert_everything_is_released(rounds: int, live: Callable[[int], object]) -> None:
    """Call `live` with the number of the round. The first half of the rounds fills caches that may stay."""
    for number in range(rounds):
        live(number)
    memory, before = resident(), blocks()
    for number in range(rounds, 2 * rounds):
        live(number)
    assert blocks() - before < rounds * BLOCKS_PER_ROUND
    assert not [each for each in gc.get_objects() if isinstance(each, Stage)]
    assert resident() - memory < NATIVE_BYTES


def test_stages_that_crash_and_close_are_released() -> None:
    assert_everything_is_released(6, simulate)


def test_a_worker_releases_partitions_that_it_loses(tmp_path: Path) -> None:
    """Two workers of a service start and stop; each start and each stop is a rebalance."""
    settings = Settings(prefix="released", owners=4, tables=4, bands="none", threads=1)
    deployment = Deployment(settings)

    async def come_and_go(number: int) -> None:
        log = MemoryLog()
        await log.create_topics(topic_specs(settings))
        for name in ("shard", "aggregator"):
            workers = [
                make_runner(name, replace(settings, state=tmp_path / f"{number}-{each}"), log, deployment)
                for each in range(2)
            ]
            running = []
            for worker in workers:
                running.append(asyncio.create_task(worker.run()))
                await _assigned(worker)
            for worker, task in zip(workers, running, strict=True):
                worker.stop()
                await task

    assert_everything_is_released(3, lambda number: asyncio.run(come_and_go(number)))


async def _assigned(runner: Runner) -> None:
    async with asyncio.timeout(20):
        while not runner.assignment:
            await asyncio.sleep(0.005)
