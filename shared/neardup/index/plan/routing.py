"""Routing of probes: the shard partition that holds the keys with which a probe must be compared.

Partitions are numbered by table and slice: the permuted tables first, then the buckets. The leading bits of a key,
which all matches share, select its slice of a permuted table. The buckets of all bands are in one table, so that a page
with many bands is sent to few partitions only; keys of different bands differ, because they contain the number of the
band. A hash of the key selects the slice of the buckets.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from neardup.index.plan.plan import Plan

_MIX: Final = 0x9E3779B97F4A7C15
"""2^64 / golden ratio. Multiplication by it distributes keys that are not hashes, and fingerprints of similar pages."""
_WORD: Final = 2**64 - 1


class Place(NamedTuple):
    """The contents of a shard partition: a slice of a permuted table or, if `table` is None, a slice of the buckets."""

    table: int | None
    slice: int


@dataclass(frozen=True, slots=True)
class Routing:
    """The mapping between tables, slices and shard partitions of a plan."""

    plan: Plan

    def place_of(self, partition: int) -> Place:
        """Return the table and slice of a partition. Raises ValueError if there is no such partition."""
        if not 0 <= partition < self.plan.partitions:
            raise ValueError(f"expected a partition from 0 to {self.plan.partitions - 1}, got {partition}")
        permuted = len(self.plan.tables) << self.plan.slice_bits
        if partition < permuted:
            table, number = divmod(partition, 1 << self.plan.slice_bits)
            return Place(table, number)
        return Place(None, partition - permuted)

    def table_number(self, partition: int) -> int:
        """Return the number of a partition's table. The buckets are numbered after the permuted tables."""
        table = self.place_of(partition).table
        return len(self.plan.tables) if table is None else table

    def partitions_of_table(self, table: int | None) -> range:
        """Return the partitions of a permuted table, or those of the buckets if `table` is None."""
        permuted = len(self.plan.tables) << self.plan.slice_bits
        if table is None:
            return range(permuted, self.plan.partitions)
        return range(table << self.plan.slice_bits, (table + 1) << self.plan.slice_bits)

    def names(self, found_by: int) -> tuple[str, ...]:
        """Return the names in verdicts of the tables and, after them, the bands whose bits are set."""
        permuted = len(self.plan.tables)
        numbers = [number for number in range(found_by.bit_length()) if found_by >> number & 1]
        return tuple(f"simhash/{number}" if number < permuted else f"bands/{number - permuted}" for number in numbers)

    def partitions_of_keys(self, table: int, keys: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return the partition of each key of a permuted table. The keys are permuted fingerprints."""
        bits = self.plan.slice_bits
        slices = _leading(keys, bits)
        return slices + (table << bits)

    def partitions_of_buckets(self, keys: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return the partition of each bucket key, of any band."""
        first = len(self.plan.tables) << self.plan.slice_bits
        return _leading(keys * np.uint64(_MIX), self.plan.band_slice_bits) + first


def owner_of(fingerprint: int, owners: int) -> int:
    """Return the inbox partition whose directory holds the documents with this fingerprint."""
    return ((fingerprint * _MIX & _WORD) >> 32) * owners >> 32


def owners_of(fingerprints: NDArray[np.uint64], owners: int) -> NDArray[np.int64]:
    """Return the owner of each fingerprint."""
    mixed = (fingerprints * np.uint64(_MIX)) >> np.uint64(32)
    return ((mixed * np.uint64(owners)) >> np.uint64(32)).astype(np.int64)


def owners_among(fingerprints: NDArray[np.uint64], owners: int) -> list[int]:
    """Return the owners of at least one of these fingerprints, in rising order."""
    if owners == 1:
        return [0] if fingerprints.size else []
    found: list[int] = np.bincount(owners_of(fingerprints, owners)).nonzero()[0].tolist()
    return found


def rows_by_owner(fingerprints: NDArray[np.uint64], owners: int) -> list[tuple[int, NDArray[np.int64] | slice]]:
    """Return each owner of at least one of these fingerprints, in rising order, with the rows that it owns."""
    if owners == 1:
        return [(0, slice(None))] if fingerprints.size else []
    mine = owners_of(fingerprints, owners)
    return [(owner, np.flatnonzero(mine == owner)) for owner in np.bincount(mine).nonzero()[0].tolist()]


def _leading(words: NDArray[np.uint64], bits: int) -> NDArray[np.int64]:
    if bits == 0:
        return np.zeros(words.size, np.int64)
    return (words >> np.uint64(64 - bits)).astype(np.int64)
