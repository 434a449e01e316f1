"""Routing: which shard partition holds the keys that a probe must meet.

Partitions are numbered table by table, slice by slice: the permuted tables first, then the bands. A slice of a
permuted table is picked by the key's leading bits, which a match shares; a slice of a bucket table by its hash.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from neardup.plan import Plan

_MIX: Final = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio: spreads bucket keys that are not hashes


class Place(NamedTuple):
    """What one shard partition holds."""

    table: int
    slice: int
    is_band: bool


@dataclass(frozen=True, slots=True)
class Routing:
    """Who holds what, as the plan says."""

    plan: Plan

    def place_of(self, partition: int) -> Place:
        """Table and slice of a partition; bands are counted from 0 again. ValueError when there is no such one."""
        if not 0 <= partition < self.plan.partitions:
            raise ValueError(f"expected a partition from 0 to {self.plan.partitions - 1}, got {partition}")
        permuted = len(self.plan.tables) << self.plan.slice_bits
        if partition < permuted:
            table, number = divmod(partition, 1 << self.plan.slice_bits)
            return Place(table, number, False)
        table, number = divmod(partition - permuted, 1 << self.plan.band_slice_bits)
        return Place(table, number, True)

    def table_number(self, partition: int) -> int:
        """The table of a partition, with the bands counted after the permuted tables."""
        place = self.place_of(partition)
        return place.table + len(self.plan.tables) * place.is_band

    def partitions_of_table(self, number: int) -> range:
        """The partitions of a table, with the bands counted after the permuted tables."""
        permuted = len(self.plan.tables)
        if number < permuted:
            return range(number << self.plan.slice_bits, (number + 1) << self.plan.slice_bits)
        bits, first = self.plan.band_slice_bits, permuted << self.plan.slice_bits
        return range(first + (number - permuted << bits), first + (number - permuted + 1 << bits))

    def names(self, tables: int) -> tuple[str, ...]:
        """What a verdict calls the tables whose bits are set."""
        permuted = len(self.plan.tables)
        numbers = [number for number in range(tables.bit_length()) if tables >> number & 1]
        return tuple(f"simhash/{number}" if number < permuted else f"bands/{number - permuted}" for number in numbers)

    def partitions_of_keys(self, table: int, keys: NDArray[np.uint64]) -> NDArray[np.int64]:
        """The partition of each key (permuted, not the fingerprint) of that table."""
        bits = self.plan.slice_bits
        slices = _leading(keys, bits)
        return slices + (table << bits)

    def partitions_of_buckets(self, band: int, keys: NDArray[np.uint64]) -> NDArray[np.int64]:
        """The partition of each bucket key of that band."""
        bits = self.plan.band_slice_bits
        first = (len(self.plan.tables) << self.plan.slice_bits) + (band << bits)
        return _leading(keys * _MIX, bits) + first


def _leading(words: NDArray[np.uint64], bits: int) -> NDArray[np.int64]:
    if bits == 0:
        return np.zeros(words.size, np.int64)
    return (words >> np.uint64(64 - bits)).astype(np.int64)
