"""Recall as it is now: of the near-duplicates that somebody knew of, how many the stream found.

Two know: who planted a canary, and the shadow that compares a sample of documents with everything recent. Each check
is a found or a missed one. Prometheus has them as counters, to be added up over workers and hours (the recorded
rules do), and as gauges over the last few hundred of a partition, with the interval that so few allow to claim.
"""

from collections import deque
from math import sqrt
from typing import Final, NamedTuple

from neardup import metrics

LAST: Final = 1000
"""Checks that the gauges speak of."""
Z: Final = 1.96
"""Standard deviations on either side: 95%."""
_GAUGES: Final = (metrics.RECALL, metrics.RECALL_LOW, metrics.RECALL_HIGH)


class Interval(NamedTuple):
    """A share, and between what bounds the true one is, 95 times of 100."""

    low: float
    estimate: float
    high: float


def wilson(found: int, total: int) -> Interval:
    """Wilson's interval: unlike the plain one, it stays within 0 and 1, and is wide when there is little to go by."""
    if not total:
        return Interval(0.0, 0.0, 1.0)
    share = found / total
    middle = share + Z * Z / (2 * total)
    reach = Z * sqrt(share * (1 - share) / total + Z * Z / (4 * total * total))
    scale = 1 + Z * Z / total
    # Rounding alone would put the bounds of all found, or none, a hair beside 1 and 0.
    return Interval(max(0.0, (middle - reach) / scale), share, min(1.0, (middle + reach) / scale))


class Recall:
    """The checks of one partition by one `source`, as metrics. Until the first one there are no gauges."""

    def __init__(self, source: str, partition: int, last: int = LAST) -> None:
        self._labels = source, str(partition)
        self._last: deque[bool] = deque(maxlen=last)
        self._counters = {
            found: metrics.RECALL_CHECKS.labels(source, "found" if found else "missed") for found in (True, False)
        }

    def check(self, found: bool) -> None:
        """One more."""
        self._counters[found].inc()
        self._last.append(found)
        interval = wilson(sum(self._last), len(self._last))
        for gauge, value in zip(_GAUGES, (interval.estimate, interval.low, interval.high), strict=True):
            gauge.labels(*self._labels).set(value)

    def close(self) -> None:
        """Another worker's to report from now on."""
        metrics.withdraw(self._labels, *_GAUGES)
