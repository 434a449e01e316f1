"""Counters of a slice or a bucket table."""

from dataclasses import dataclass


@dataclass(slots=True)
class TableCounts:
    """Monotonic counters for metrics. They start at 0 with the process; snapshots do not contain them."""

    probes: int = 0
    """Queries."""
    scanned: int = 0
    """Entries compared with a query."""
    inserted: int = 0
    """Entries inserted that were new in the current epoch."""
    repeated: int = 0
    """Entries inserted that were there already."""
    matches: int = 0
    """Matches returned."""
    capped: int = 0
    """Queries to a slice with more matches than the cap."""
    common: int = 0
    """Queries to a bucket that had reached the limit: nothing was returned or inserted."""
    merges: int = 0
    """Finished merges of two runs."""
    expired: int = 0
    """Entries dropped because they were older than the time to live."""
