"""Parallel work with results in order."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, TypeVar

CORES: Final = len(os.sched_getaffinity(0))
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def in_order(
    pool: ThreadPoolExecutor, work: Callable[[_Item], _Result], items: Iterable[_Item], ahead: int = 2 * CORES
) -> Iterator[_Result]:
    """Yield work(item) for each item, in order.

    At most `ahead` results are being computed or waiting at a time, which bounds memory, unlike the pool's own `map`.
    """
    waiting: deque[Future[_Result]] = deque()
    for item in items:
        if len(waiting) == ahead:
            yield waiting.popleft().result()
        waiting.append(pool.submit(work, item))
    while waiting:
        yield waiting.popleft().result()
