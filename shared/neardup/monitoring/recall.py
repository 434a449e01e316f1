"""Current recall: the share of known near-duplicates that the stream found.

There are two sources of known near-duplicates: planted canaries, and the shadow sample, which compares a share of the
documents with all recent ones. Each check is a hit or a miss. Counters of checks are summed by the recording rules of
Prometheus over workers and hours. Gauges cover the last checks of a partition, with their confidence interval.
"""

from collections import deque
from math import sqrt
from typing import Final, NamedTuple

from neardup import metrics

LAST: Final = 1000
"""Number of recent checks that the gauges cover."""
Z: Final = 1.96
"""Number of standard deviations on either side of the estimate, for a 95% interval."""
_GAUGES: Final = (metrics.RECALL, metrics.RECALL_LOW, metrics.RECALL_HIGH)


class Interval(NamedTuple):
    """A share with its 95% confidence interval."""

    low: float
    estimate: float
    high: float


def wilson(found: int, total: int) -> Interval:
    """Return Wilson's score interval, which stays within 0 and 1 and is wide when `total` is small."""
    if not total:
        return Interval(0.0, 0.0, 1.0)
    share = found / total
    middle = share + Z * Z / (2 * total)
    reach = Z * sqrt(share * (1 - share) / total + Z * Z / (4 * total * total))
    scale = 1 + Z * Z / total
    # Rounding alone could put a bound slightly above 1 or below 0.
    return Interval(max(0.0, (middle - reach) / scale), share, min(1.0, (middle + reach) / scale))


class Recall:
    """The checks of one partition by one `source`, as metrics. The gauges appear with the first check."""

    def __init__(self, source: str, partition: int, last: int = LAST) -> None:
        self._labels = source, str(partition)
        self._last: deque[bool] = deque(maxlen=last)
        self._counters = {
            found: metrics.RECALL_CHECKS.labels(source, "found" if found else "missed") for found in (True, False)
        }

    def check(self, found: bool) -> None:
        """Count a check and update the gauges."""
        self._counters[found].inc()
        self._last.append(found)
        interval = wilson(sum(self._last), len(self._last))
        for gauge, value in zip(_GAUGES, (interval.estimate, interval.low, interval.high), strict=True):
            gauge.labels(*self._labels).set(value)

    def close(self) -> None:
        """Withdraw the gauges, because another worker reports them from now on."""
        metrics.withdraw(self._labels, *_GAUGES)
