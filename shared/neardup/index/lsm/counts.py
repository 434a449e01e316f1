"""What a slice or a bucket table did, under the same names for the same things."""

from dataclasses import dataclass


@dataclass(slots=True)
class TableCounts:
    """Rising numbers, for metrics. They begin at 0 with the process: a snapshot does not keep them."""

    probes: int = 0
    """Queries asked."""
    scanned: int = 0
    """Entries that queries were compared with."""
    inserted: int = 0
    """Entries that were not there, in this epoch."""
    repeated: int = 0
    """Entries that were."""
    matches: int = 0
    """Entries that queries were told of."""
    capped: int = 0
    """Queries to a slice that had more matches than the cap."""
    common: int = 0
    """Queries to a bucket table whose bucket had reached the limit: they were told nothing and not inserted."""
    merges: int = 0
    """Merges of two runs that were finished."""
    expired: int = 0
    """Entries that were dropped because they were older than the time to live."""
