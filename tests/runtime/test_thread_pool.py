"""Tests of a worker's thread pool: grouping of small calls, parallel large calls, and errors of single calls."""

import asyncio
import threading
from collections.abc import Callable, Iterator

import pytest

from neardup.runtime.thread_pool import StageThreads

LARGE = 1 << 20


@pytest.fixture
def threads() -> Iterator[StageThreads]:
    found = StageThreads(2)
    yield found
    found.close()


async def test_small_calls_of_one_turn_share_a_thread_and_keep_their_results(threads: StageThreads) -> None:
    def numbered(number: int) -> Callable[[], tuple[int, int]]:
        return lambda: (number, threading.get_ident())

    calls = [threads.run(numbered(number), size=100) for number in range(50)]
    results = await asyncio.gather(*calls)
    assert [number for number, _ in results] == list(range(50))
    (thread,) = {thread for _, thread in results}
    assert thread != threading.get_ident()


async def test_large_calls_run_in_parallel(threads: StageThreads) -> None:
    both = threading.Barrier(2, timeout=10)
    # Each call waits for the other one: in sequence they would never end.
    await asyncio.gather(*(threads.run(both.wait, size=LARGE) for _ in range(2)))


async def test_a_large_call_does_not_delay_the_small_ones_of_its_turn(threads: StageThreads) -> None:
    release = threading.Event()
    large = threads.run(lambda: release.wait(10), size=LARGE)
    assert await threads.run(lambda: "small", size=100) == "small"
    assert not large.done()
    release.set()
    assert await large


async def test_a_slow_small_call_barely_delays_the_result_of_the_call_before(
    threads: StageThreads,
) -> None:
    release = threading.Event()

    def slow() -> str:
        threading.Event().wait(0.01)
        return "first"

    first, second = threads.run(slow, size=100), threads.run(lambda: release.wait(10), size=100)
    assert await asyncio.wait_for(first, 5) == "first"
    assert not second.done()
    release.set()
    assert await second


async def test_an_error_reaches_only_the_call_that_raised_it(threads: StageThreads) -> None:
    def fail() -> int:
        raise ValueError("mine")

    before, failing, after = (threads.run(call, size=1) for call in (lambda: 1, fail, lambda: 2))
    with pytest.raises(ValueError, match="mine"):
        await failing
    assert (await before, await after) == (1, 2)


async def test_a_cancelled_call_does_not_affect_the_others(threads: StageThreads) -> None:
    given_up, kept = threads.run(lambda: 1, size=1), threads.run(lambda: 2, size=1)
    given_up.cancel()
    assert await kept == 2
