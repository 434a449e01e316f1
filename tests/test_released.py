"""What is closed lets go of its memory: a worker gains and loses partitions for months."""

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

BLOCKS_A_ROUND = 150
"""Of Python's memory, for what warms up late; a stage that stays is some thousands."""
NATIVE_BYTES = 16 * 2**20
"""Of the process, in all rounds: a RocksDB that stays open is some hundred thousand."""


def resident() -> int:
    """Bytes, after what is free was given back."""
    gc.collect()
    if sys.platform == "linux":
        ctypes.CDLL(None).malloc_trim(0)
    found = re.search(r"VmRSS:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found
    return int(found[1]) * 1024


def blocks() -> int:
    gc.collect()
    return sys.getallocatedblocks()


def check_that_nothing_stays(rounds: int, live: Callable[[int], object]) -> None:
    """`live` has the number of the round; the first half of them fills caches that are meant to be filled."""
    for number in range(rounds):
        live(number)
    memory, before = resident(), blocks()
    for number in range(rounds, 2 * rounds):
        live(number)
    assert blocks() - before < rounds * BLOCKS_A_ROUND
    assert not [each for each in gc.get_objects() if isinstance(each, Stage)]
    assert resident() - memory < NATIVE_BYTES


def test_stages_that_crash_and_close_leave_nothing() -> None:
    check_that_nothing_stays(6, simulate)


def test_a_worker_that_loses_its_partitions_to_another_keeps_nothing_of_them(tmp_path: Path) -> None:
    """Two workers of a service that come and go: each coming and each going is a rebalance."""
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

    check_that_nothing_stays(3, lambda number: asyncio.run(come_and_go(number)))


async def _assigned(runner: Runner) -> None:
    async with asyncio.timeout(20):
        while not runner.assignment:
            await asyncio.sleep(0.005)
