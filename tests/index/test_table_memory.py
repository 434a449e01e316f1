"""Tests of the memory that tables report, against the allocator, while runs are merged."""

import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import numpy as np
import pytest

from neardup.index.buckets.table import BucketTable
from neardup.index.lsm import array_pool
from neardup.index.lsm.lookup import Found
from neardup.index.plan.table import Table
from neardup.index.slices.codecs import Codec
from neardup.index.slices.slice import Slice, SliceSettings
from tests.support.tables import compact

BATCH = 500
BATCHES = 120
FOUND_BYTES = 2 * Found().query.nbytes
"""Size of the buffers for one kind of matches."""
OTHERS = 100_000
"""Size of objects, and of a codec's fixed data per run."""

Insert = Callable[[np.random.Generator], None]


@contextmanager
def allocated() -> Iterator[Callable[[], int]]:
    """Provide a function that returns the bytes allocated since the start and not yet freed."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        yield lambda: tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()


def a_slice(codec: Codec) -> tuple[Slice, Insert]:
    kept = Slice(Table.plain(24), settings=SliceSettings(codec=codec, tail=1000, ratio=4, compress_from=3000))
    return kept, lambda rng: discard(kept.probe_and_insert(rng.integers(0, 2**64, BATCH, np.uint64), 3))


def buckets() -> tuple[BucketTable, Insert]:
    kept = BucketTable(recent=1000, ratio=4)
    words = (2, BATCH)
    return kept, lambda rng: discard(kept.probe_and_insert(*rng.integers(0, 2**64, words, np.uint64)))


def discard(_: object) -> None:
    """Discard a result."""


TABLES = {**{codec.value: partial(a_slice, codec) for codec in Codec}, "buckets": buckets}


@pytest.mark.parametrize("made", TABLES.values(), ids=TABLES)
def test_bytes_include_merges_in_progress(
    made: Callable[[], tuple[Slice | BucketTable, Insert]], monkeypatch: pytest.MonkeyPatch
) -> None:
    # tracemalloc does not see mapped memory.
    monkeypatch.setattr(array_pool, "LEAST_BYTES", 1 << 40)
    rng = np.random.default_rng(1)
    _, warm_up = made()
    for _ in range(BATCHES // 4):
        warm_up(rng)
    most = 0.0
    with allocated() as nbytes:
        kept, insert = made()
        for _ in range(BATCHES):
            insert(rng)
            assert kept.nbytes == pytest.approx(nbytes(), abs=2 * FOUND_BYTES + OTHERS)
            most = max(most, kept.nbytes / len(kept))
        compact(kept)
        assert most > 1.5 * kept.nbytes / len(kept), "expected merges to use much memory at some time"


def test_large_buffers_are_released_after_use() -> None:
    kept = Slice(Table.plain(8))
    near = np.arange(3000, dtype=np.uint64) & np.uint64(0xFFF)
    with allocated() as nbytes:
        kept.probe_and_insert(near, 12)
        kept.probe_and_insert(near[:1], 0)
        assert nbytes() < 2 * FOUND_BYTES + OTHERS
