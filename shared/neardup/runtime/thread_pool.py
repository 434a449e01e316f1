"""The thread pool of a worker, shared by all its partitions.

Passing a call to a thread and its result back costs more than processing a small batch of records. So the calls made in
one turn of the event loop are grouped: small ones run one after the other in one thread, a large one runs by itself.
"""

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, NamedTuple, TypeVar

T = TypeVar("T")

_GROUP_BYTES: Final = 1 << 16
"""Maximum size of a group of calls in bytes. A larger call forms a group of its own."""
_REPORT_SECONDS: Final = 0.002
"""Time after which a thread returns its results so far, even if its group is not finished."""


class _Call(NamedTuple):
    function: Callable[[], Any]
    size: int
    future: "asyncio.Future[Any]"


_Done = tuple[_Call, Any, BaseException | None]


class StageThreads:
    """A thread pool that groups small calls. Use from one event loop. A call may block; its future holds its error."""

    def __init__(self, threads: int = 0) -> None:
        threads = threads or os.cpu_count() or 1
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix="stage")
        # Separate threads, so that records do not wait for the disk. Half as many: writes are large.
        self._savers = ThreadPoolExecutor((threads + 1) // 2, thread_name_prefix="save")
        self._waiting: list[_Call] = []

    def run(self, call: Callable[[], T], size: int = _GROUP_BYTES) -> "asyncio.Future[T]":
        """Run a call in a thread. `size` is the number of bytes that it processes, an estimate of its duration.

        Calls made in the same turn of the event loop may run in parallel or one after the other.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        if not self._waiting:
            loop.call_soon(self._submit, loop)
        self._waiting.append(_Call(call, size, future))
        return future

    def save(self, call: Callable[[], T]) -> "asyncio.Future[T]":
        """Run a call that mostly waits for the disk, in a thread that `run` does not use."""
        return asyncio.get_running_loop().run_in_executor(self._savers, call)

    def close(self) -> None:
        """Wait for running calls and stop the threads."""
        self._executor.shutdown()
        self._savers.shutdown()

    def _submit(self, loop: asyncio.AbstractEventLoop) -> None:
        calls, self._waiting = self._waiting, []
        for group in _groups(calls):
            self._executor.submit(_run_group, group, loop)


def _groups(calls: Sequence[_Call]) -> list[list[_Call]]:
    """Return the calls in groups, one per thread."""
    groups: list[list[_Call]] = []
    room = 0
    for call in calls:
        if call.size > room:
            groups.append([])
            room = max(_GROUP_BYTES, call.size)
        groups[-1].append(call)
        room -= call.size
    return groups


def _run_group(calls: Sequence[_Call], loop: asyncio.AbstractEventLoop) -> None:
    done: list[_Done] = []
    reported = time.monotonic()
    for call in calls:
        try:
            done.append((call, call.function(), None))
        except BaseException as error:
            done.append((call, None, error))
        if time.monotonic() - reported > _REPORT_SECONDS:
            loop.call_soon_threadsafe(_set_results, done)
            done, reported = [], time.monotonic()
    if done:
        loop.call_soon_threadsafe(_set_results, done)


def _set_results(done: Sequence[_Done]) -> None:
    for call, result, error in done:
        if call.future.done():  # cancelled while the call was running
            continue
        if error is None:
            call.future.set_result(result)
        else:
            call.future.set_exception(error)
