"""Detection of partitions with lag that make no progress, and of a broker that does not answer."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from neardup.log import Partition

SILENT_SECONDS: Final = 10.0
"""A worker whose last answer from the broker is older than this is not ready."""
REPORT_SECONDS: Final = 10.0
"""Interval between log lines during an outage."""

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Seen:
    done: int
    since: float


class Watchdog:
    """Tracks the progress of each partition. `limit` is in seconds, `clock` is monotonic."""

    def __init__(self, limit: float, clock: Callable[[], float]) -> None:
        self._limit = limit
        self._clock = clock
        self._seen: dict[Partition, _Seen] = {}

    def observe(self, partition: Partition, done: int, end: int) -> None:
        """Record the progress of a partition.

        `done` is the next offset to be processed, `end` the next offset to be written to the log.
        """
        seen = self._seen.get(partition)
        # A partition without lag cannot be stuck: its time starts again.
        if seen is None or seen.done != done or done >= end:
            self._seen[partition] = _Seen(done, self._clock())

    def forget(self, partition: Partition) -> None:
        """Stop tracking a partition that was revoked."""
        self._seen.pop(partition, None)

    def stuck(self) -> list[Partition]:
        """Return the partitions that made no progress for longer than the limit while there was lag."""
        now = self._clock()
        return [partition for partition, seen in self._seen.items() if now - seen.since > self._limit]


class BrokerContact:
    """The age of the last answer from the broker, and the log lines about an outage.

    An outage begins when the last answer is older than `SILENT_SECONDS`, and ends with the next answer. `clock` returns
    monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._answered_at = clock()
        self._reported_at: float | None = None

    def answered(self) -> bool:
        """Record an answer; return True if it ended an outage."""
        silence = self.silence()
        self._answered_at = self._clock()
        self._reported_at = None
        if silence is not None:
            logger.info("contact with the broker is restored after %.0f s", silence)
        return silence is not None

    def silence(self) -> float | None:
        """Return the age of the last answer in seconds during an outage, otherwise None."""
        age = self._clock() - self._answered_at
        return age if age > SILENT_SECONDS else None

    def report(self) -> None:
        """Log the outage, if there is one and the last line about it is old enough."""
        silence = self.silence()
        if silence is None:
            return
        now = self._clock()
        if self._reported_at is None or now - self._reported_at >= REPORT_SECONDS:
            self._reported_at = now
            logger.warning("no contact with the broker for %.0f s; processing resumes when it answers", silence)
