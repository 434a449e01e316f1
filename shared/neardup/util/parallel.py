"""Work for all cores, the results in order."""

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
    """What `work` makes of each item. So many results at most are in the making or wait to be taken: memory is bounded,
    as it is not with the pool's own map."""
    waiting: deque[Future[_Result]] = deque()
    for item in items:
        if len(waiting) == ahead:
            yield waiting.popleft().result()
        waiting.append(pool.submit(work, item))
    while waiting:
        yield waiting.popleft().result()
