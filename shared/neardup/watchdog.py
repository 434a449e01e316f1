"""Notices partitions that stand still although there is work for them."""

from collections.abc import Callable
from dataclasses import dataclass

from neardup.log import Partition


@dataclass(slots=True)
class _Seen:
    done: int
    since: float


class Watchdog:
    """Is told how far each partition is; knows which are stuck. The clock is monotonic seconds."""

    def __init__(self, limit: float, clock: Callable[[], float]) -> None:
        self._limit = limit
        self._clock = clock
        self._seen: dict[Partition, _Seen] = {}

    def observe(self, partition: Partition, done: int, end: int) -> None:
        """`done` is the next offset to be processed, `end` the next one to be written."""
        seen = self._seen.get(partition)
        # Without lag, standing still is right: the time starts anew.
        if seen is None or seen.done != done or done >= end:
            self._seen[partition] = _Seen(done, self._clock())

    def forget(self, partition: Partition) -> None:
        """The partition is not ours any more."""
        self._seen.pop(partition, None)

    def stuck(self) -> list[Partition]:
        """Partitions that made no progress for longer than the limit while there was lag."""
        now = self._clock()
        return [partition for partition, seen in self._seen.items() if now - seen.since > self._limit]
