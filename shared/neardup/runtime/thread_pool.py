"""The threads of a worker, which its partitions share.

Handing a call to a thread and its result back costs more than a small batch of records does. So the calls that come
in one turn of the event loop go together: small ones one after the other in one thread, a large one alone.
"""

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, NamedTuple, TypeVar

T = TypeVar("T")

_SHARE_BYTES: Final = 1 << 16
"""What a thread takes at once; a call on more than this goes alone."""
_TELL_SECONDS: Final = 0.002
"""After so long, the results so far are handed back."""


class _Call(NamedTuple):
    run: Callable[[], Any]
    size: int
    future: "asyncio.Future[Any]"


class StageThreads:
    """Some threads. Lives on the event loop; a call may block, and raises in its future."""

    def __init__(self, threads: int = 0) -> None:
        threads = threads or os.cpu_count() or 1
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix="stage")
        # Threads of their own: records would wait for the disk. Fewer: what they write is large, and the disk is one.
        self._savers = ThreadPoolExecutor((threads + 1) // 2, thread_name_prefix="save")
        self._waiting: list[_Call] = []

    def run(self, call: Callable[[], T], size: int = _SHARE_BYTES) -> "asyncio.Future[T]":
        """Have a call made in a thread; `size` is how many bytes it works on, which tells how long it may take.

        Calls of the same turn may be made at once or one after the other.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        if not self._waiting:
            loop.call_soon(self._hand_out, loop)
        self._waiting.append(_Call(call, size, future))
        return future

    def save(self, call: Callable[[], T]) -> "asyncio.Future[T]":
        """Have a call made that mostly waits for the disk; other calls do not wait for it."""
        return asyncio.get_running_loop().run_in_executor(self._savers, call)

    def close(self) -> None:
        """Wait for what is being done and end the threads."""
        self._executor.shutdown()
        self._savers.shutdown()

    def _hand_out(self, loop: asyncio.AbstractEventLoop) -> None:
        calls, self._waiting = self._waiting, []
        for share in _shares(calls):
            self._executor.submit(_work, share, loop)


def _shares(calls: Sequence[_Call]) -> list[list[_Call]]:
    """What one thread makes each."""
    shares: list[list[_Call]] = []
    room = 0
    for call in calls:
        if call.size > room:
            shares.append([])
            room = max(_SHARE_BYTES, call.size)
        shares[-1].append(call)
        room -= call.size
    return shares


def _work(calls: Sequence[_Call], loop: asyncio.AbstractEventLoop) -> None:
    done: list[tuple[_Call, Any, BaseException | None]] = []
    told = time.monotonic()
    for call in calls:
        try:
            done.append((call, call.run(), None))
        except BaseException as error:
            done.append((call, None, error))
        if time.monotonic() - told > _TELL_SECONDS:
            loop.call_soon_threadsafe(_tell, done)
            done, told = [], time.monotonic()
    if done:
        loop.call_soon_threadsafe(_tell, done)


def _tell(done: "Sequence[tuple[_Call, Any, BaseException | None]]") -> None:
    for call, result, error in done:
        if call.future.done():  # the one who waited was ended
            continue
        if error is None:
            call.future.set_result(result)
        else:
            call.future.set_exception(error)
