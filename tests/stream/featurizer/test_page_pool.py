"""Tests of the process pool: same chunks as in the calling process, same order, and behaviour without processes."""

import os
import signal
from collections.abc import Iterator
from concurrent.futures.process import BrokenProcessPool

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.index.psm.flip_model import simulated_model
from neardup.log import PlainRecord
from neardup.messages.pages import write_page
from neardup.sample import sample_crawl
from neardup.signatures.signature import Signatures
from neardup.stream.featurizer.page_pool import CHUNK_RECORDS, FeaturizedChunk, PagePool
from neardup.stream.featurizer.shared_records import SLOT_BYTES, PackedRecords, SharedSlots

COUNT = 3 * CHUNK_RECORDS + 5


@pytest.fixture(scope="module")
def records() -> list[PlainRecord]:
    values = [write_page(made.page) for made in sample_crawl(COUNT, seed=2, mean_bytes=8000)]
    values[CHUNK_RECORDS + 3] = b'{"url": 7}'
    values[COUNT - 1] = b""
    return [PlainRecord("pages", 1, 10 + n, 1000 + n, None, value, ()) for n, value in enumerate(values)]


@given(
    st.lists(
        st.builds(
            PlainRecord,
            st.just("pages"),
            st.integers(0, 9),
            st.integers(0, 9),
            st.integers(0, 9),
            st.none() | st.binary(max_size=3),
            st.none() | st.binary(max_size=3),
            st.just((("content-type", b"text/html"),)),
        )
    )
)
def test_unpacked_records_equal_the_packed_ones(records: list[PlainRecord]) -> None:
    assert list(PackedRecords.pack(records, None).unpack(None)) == records
    slots = SharedSlots.create()
    if slots is not None:
        packed = PackedRecords.pack(records, slots)
        assert (packed.slot is not None, packed.values) == (True, b"")
        assert list(packed.unpack(slots)) == records
        slots.close()


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="the system has no files in memory")
def test_values_without_a_free_slot_are_packed_with_the_records() -> None:
    slots = SharedSlots.create()
    assert slots is not None
    large = PlainRecord("pages", 0, 0, 0, None, bytes(SLOT_BYTES + 1), ())
    small = large._replace(value=b"page")
    all_packed = [PackedRecords.pack([each], slots) for each in (large, *[small] * 100)]
    in_slots = [packed.slot for packed in all_packed if packed.slot is not None]
    assert all_packed[0].slot is None
    assert 0 < len(in_slots) == len(set(in_slots)) < 100
    assert [list(packed.unpack(slots)) for packed in all_packed] == [[large], *[[small]] * 100]
    slots.release(in_slots[7])
    assert PackedRecords.pack([small], slots).slot == in_slots[7]
    slots.close()


@pytest.fixture(scope="module")
def pooled(records: list[PlainRecord]) -> Iterator[list[FeaturizedChunk]]:
    pool = PagePool(Signatures(), simulated_model(), processes=2)
    pool.start()
    yield [chunk for batch in pool.featurize(records, COUNT) for chunk in batch.chunks]
    pool.close()


def test_every_record_is_in_one_chunk_and_in_order(records: list[PlainRecord], pooled: list[FeaturizedChunk]) -> None:
    alone = PagePool(Signatures(), simulated_model()).featurize_chunk(records)
    assert [url for chunk in pooled for url in chunk.documents.url] == alone.documents.url
    for column in ("id", "fingerprint", "checksums", "sketch", "words"):
        together = np.concatenate([getattr(chunk.documents, column) for chunk in pooled])
        assert np.array_equal(together, getattr(alone.documents, column)), column
    assert np.array_equal(np.concatenate([chunk.bands for chunk in pooled]), alone.bands)
    levels = [chunk.levels for chunk in pooled if chunk.levels is not None]
    assert alone.levels is not None
    assert np.array_equal(np.concatenate(levels), alone.levels)
    assert [page for chunk in pooled for page in chunk.skipped] == alone.skipped


def test_a_rejected_record_is_named_by_its_index(pooled: list[FeaturizedChunk]) -> None:
    rejected = [each for chunk in pooled for each in chunk.rejected]
    assert [(number, error.reason) for number, error in rejected] == [
        (CHUNK_RECORDS + 3, "invalid-page"),
        (COUNT - 1, "invalid-page"),
    ]


@pytest.mark.parametrize("processes", [1, 2])
def test_a_batch_has_its_records_and_is_at_most_as_large_as_requested(
    records: list[PlainRecord], processes: int
) -> None:
    pool = PagePool(Signatures(), None, processes)
    pool.start()
    size = CHUNK_RECORDS + 5
    batches = list(pool.featurize(records, size))
    pool.close()
    assert [record for batch in batches for record in batch.records] == records
    assert [len(batch.records) for batch in batches] == [*[size] * (COUNT // size), COUNT % size]
    alone = PagePool(Signatures(), None)
    for batch in batches:
        whole = alone.featurize_chunk(batch.records)
        assert [url for chunk in batch.chunks for url in chunk.documents.url] == whole.documents.url
        assert [place for chunk in batch.chunks for place, _ in chunk.rejected] == [
            place for place, _ in whole.rejected
        ]


def test_few_records_are_featurized_in_the_calling_process(records: list[PlainRecord]) -> None:
    pool = PagePool(Signatures(), None, processes=2)
    [(_, [chunk])] = pool.featurize(records[:CHUNK_RECORDS], CHUNK_RECORDS)
    assert pool._executor is None
    assert chunk.levels is None
    assert chunk.bands.shape == (len(chunk.documents.url), 18)


def test_a_batch_does_not_wait_for_processes_to_start(records: list[PlainRecord]) -> None:
    pool = PagePool(Signatures(), None, processes=2)
    [(_, chunks)] = pool.featurize(records, COUNT)
    assert len(chunks) == 1  # featurized in the calling process, as one chunk
    pool.start()
    [(_, chunks)] = pool.featurize(records, COUNT)
    pool.close()
    assert len(chunks) == -(-COUNT // CHUNK_RECORDS)


def test_processes_ignore_a_stop_signal_to_the_group_of_their_parent(records: list[PlainRecord]) -> None:
    pool = PagePool(Signatures(), None, processes=2)
    assert pool._executor_for(COUNT) is None
    assert pool._executor is not None
    started = list(pool._executor._processes)
    for process in started:
        # The processes are still starting. Later their own process group keeps such signals away.
        os.kill(process, signal.SIGINT)
        os.kill(process, signal.SIGTERM)
    pool.start()
    [(_, chunks)] = pool.featurize(records, COUNT)
    groups = [os.getpgid(process) for process in started]
    pool.close()
    assert len(chunks) == -(-COUNT // CHUNK_RECORDS)
    assert groups == started


def test_pages_are_featurized_in_the_calling_process_if_no_process_starts(
    records: list[PlainRecord], caplog: pytest.LogCaptureFixture
) -> None:
    pool = PagePool(Signatures(), None, processes=2)
    assert pool._executor_for(COUNT) is None
    assert pool._executor is not None
    for process in pool._executor._processes:
        os.kill(process, signal.SIGKILL)
    with pytest.raises(BrokenProcessPool):
        pool.start()
    [(_, chunks)] = pool.featurize(records, COUNT)
    pool.close()
    assert len(chunks) == 1
    assert "did not start" in caplog.text


def test_records_without_documents_give_empty_columns(records: list[PlainRecord]) -> None:
    [(_, [chunk])] = PagePool(Signatures(), simulated_model()).featurize(records[-1:], 1)
    assert chunk.bands.shape == (0, 18)
    assert len(chunk.documents.url) == 0
