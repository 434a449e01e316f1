"""What tables say of their memory against what they asked the allocator for, while runs are merged."""

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
"""Of the buffers for one kind of matches."""
OTHERS = 100_000
"""Objects, and what a codec keeps for a run whatever its size."""

Insert = Callable[[np.random.Generator], None]


@contextmanager
def allocated() -> Iterator[Callable[[], int]]:
    """How many bytes were asked for since, and not given back."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        yield lambda: tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()


def a_slice(codec: Codec) -> tuple[Slice, Insert]:
    kept = Slice(Table.plain(24), settings=SliceSettings(codec=codec, tail=1000, ratio=4, compress_from=3000))
    return kept, lambda rng: void(kept.probe_and_insert(rng.integers(0, 2**64, BATCH, np.uint64), 3))


def buckets() -> tuple[BucketTable, Insert]:
    kept = BucketTable(recent=1000, ratio=4)
    words = (2, BATCH)
    return kept, lambda rng: void(kept.probe_and_insert(*rng.integers(0, 2**64, words, np.uint64)))


def void(_: object) -> None:
    """What was found is not kept."""


TABLES = {**{codec.value: partial(a_slice, codec) for codec in Codec}, "buckets": buckets}


@pytest.mark.parametrize("made", TABLES.values(), ids=TABLES)
def test_bytes_include_merges_in_progress(
    made: Callable[[], tuple[Slice | BucketTable, Insert]], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Memory that is mapped is not seen here.
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
        assert most > 1.5 * kept.nbytes / len(kept), "expected merges to hold much, at some time"


def test_buffers_that_a_flood_needed_are_given_back() -> None:
    kept = Slice(Table.plain(8))
    near = np.arange(3000, dtype=np.uint64) & np.uint64(0xFFF)
    with allocated() as nbytes:
        kept.probe_and_insert(near, 12)
        kept.probe_and_insert(near[:1], 0)
        assert nbytes() < 2 * FOUND_BYTES + OTHERS
