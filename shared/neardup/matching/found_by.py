"""Tables and bands that found a pair of documents, packed into the bits of an integer.

Bit i stands for permuted table i of the plan. The bit after the last permuted table stands for the bucket table. When
an owner has compared the sketches of two documents, it replaces that bit by one bit per band that they share.

`FoundBy` is an integer at run time: an owner merges millions of them with `|`, and an object would cost more than the
merge.
"""

from typing import Final, NewType

FoundBy = NewType("FoundBy", int)

Candidates = dict[int, FoundBy]
"""Fingerprints that tables found for a document, each with the tables that found it."""

NO_TABLE: Final = FoundBy(0)


def found_by_table(number: int) -> FoundBy:
    """Return the value of a pair that only table `number` found."""
    return FoundBy(1 << number)


def with_bands(found_by: FoundBy, bands: int, buckets: FoundBy) -> FoundBy:
    """Replace the bit of the bucket table, `buckets`, by the bits of `bands`."""
    return FoundBy(found_by & buckets - 1 | bands * buckets)


def pack_found_by(found_by: FoundBy) -> bytes:
    """Return the shortest little-endian bytes of a value, for messages and for the store."""
    return found_by.to_bytes((found_by.bit_length() + 7) // 8, "little")


def unpack_found_by(packed: bytes) -> FoundBy:
    """Invert `pack_found_by`."""
    return FoundBy(int.from_bytes(packed, "little"))
