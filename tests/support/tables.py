"""Preparation of tables in a state that they otherwise reach only after many batches."""

from neardup.index.buckets.table import BucketTable
from neardup.index.slices.slice import Slice


def compact(table: Slice | BucketTable) -> None:
    """Turn the newest entries into a run and finish all merges."""
    table._flush()
    while table._levels._merges:
        table._levels.advance(1 << 40)
