"""Pieces made in other processes are the pieces made here."""

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
from neardup.stream.featurizer.page_pool import PIECE, FeaturizedChunk, PagePool
from neardup.stream.featurizer.shared_records import SLOT, RecordBatch, SharedSlots

COUNT = 3 * PIECE + 5


@pytest.fixture(scope="module")
def records() -> list[PlainRecord]:
    values = [write_page(made.page) for made in sample_crawl(COUNT, seed=2, mean_bytes=8000)]
    values[PIECE + 3] = b'{"url": 7}'
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
def test_a_parcel_holds_the_records_that_were_put_in(records: list[PlainRecord]) -> None:
    assert list(RecordBatch.of(records, None).unpacked(None)) == records
    shelf = SharedSlots.make()
    if shelf is not None:
        parcel = RecordBatch.of(records, shelf)
        assert (parcel.slot is not None, parcel.values) == (True, b"")
        assert list(parcel.unpacked(shelf)) == records
        shelf.close()


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="the system has no files in memory")
def test_what_has_no_place_on_the_shelf_travels_with_the_parcel() -> None:
    shelf = SharedSlots.make()
    assert shelf is not None
    large = PlainRecord("pages", 0, 0, 0, None, bytes(SLOT + 1), ())
    small = large._replace(value=b"page")
    parcels = [RecordBatch.of([each], shelf) for each in (large, *[small] * 100)]
    in_slots = [parcel.slot for parcel in parcels if parcel.slot is not None]
    assert parcels[0].slot is None
    assert 0 < len(in_slots) == len(set(in_slots)) < 100
    assert [list(parcel.unpacked(shelf)) for parcel in parcels] == [[large], *[[small]] * 100]
    shelf.clear(in_slots[7])
    assert RecordBatch.of([small], shelf).slot == in_slots[7]
    shelf.close()


@pytest.fixture(scope="module")
def pooled(records: list[PlainRecord]) -> Iterator[list[FeaturizedChunk]]:
    featurizing = PagePool(Signatures(), simulated_model(), processes=2)
    featurizing.start()
    yield [piece for lot in featurizing.lots(records, COUNT) for piece in lot.pieces]
    featurizing.close()


def test_every_record_is_in_one_piece_and_in_order(records: list[PlainRecord], pooled: list[FeaturizedChunk]) -> None:
    alone = PagePool(Signatures(), simulated_model()).piece(records)
    assert [url for piece in pooled for url in piece.documents["url"]] == alone.documents["url"]
    for column in ("id", "fingerprint", "checksums", "sketch", "words"):
        together = np.concatenate([piece.documents[column] for piece in pooled])
        assert np.array_equal(together, alone.documents[column]), column
    assert np.array_equal(np.concatenate([piece.bands for piece in pooled]), alone.bands)
    levels = [piece.levels for piece in pooled if piece.levels is not None]
    assert alone.levels is not None
    assert np.array_equal(np.concatenate(levels), alone.levels)
    assert [page for piece in pooled for page in piece.skipped] == alone.skipped


def test_what_is_no_page_is_named_by_its_place(pooled: list[FeaturizedChunk]) -> None:
    rejected = [each for piece in pooled for each in piece.rejected]
    assert [(number, error.reason) for number, error in rejected] == [
        (PIECE + 3, "invalid-page"),
        (COUNT - 1, "invalid-page"),
    ]


@pytest.mark.parametrize("processes", [1, 2])
def test_a_lot_has_its_records_and_no_more_than_was_asked_for(records: list[PlainRecord], processes: int) -> None:
    featurizing = PagePool(Signatures(), None, processes)
    featurizing.start()
    most = PIECE + 5
    lots = list(featurizing.lots(records, most))
    featurizing.close()
    assert [record for lot in lots for record in lot.records] == records
    assert [len(lot.records) for lot in lots] == [*[most] * (COUNT // most), COUNT % most]
    alone = PagePool(Signatures(), None)
    for lot in lots:
        whole = alone.piece(lot.records)
        assert [url for piece in lot.pieces for url in piece.documents["url"]] == whole.documents["url"]
        assert [place for piece in lot.pieces for place, _ in piece.rejected] == [place for place, _ in whole.rejected]


def test_few_records_are_made_on_the_spot(records: list[PlainRecord]) -> None:
    featurizing = PagePool(Signatures(), None, processes=2)
    [(_, [piece])] = featurizing.lots(records[:PIECE], PIECE)
    assert featurizing._pool is None
    assert piece.levels is None
    assert piece.bands.shape == (len(piece.documents["url"]), 18)


def test_nobody_waits_for_a_process_to_start(records: list[PlainRecord]) -> None:
    featurizing = PagePool(Signatures(), None, processes=2)
    [(_, pieces)] = featurizing.lots(records, COUNT)
    assert len(pieces) == 1  # made here, all at once
    featurizing.start()
    [(_, pieces)] = featurizing.lots(records, COUNT)
    featurizing.close()
    assert len(pieces) == -(-COUNT // PIECE)


def test_processes_hear_nothing_of_a_stop_of_their_parents_group(records: list[PlainRecord]) -> None:
    featurizing = PagePool(Signatures(), None, processes=2)
    assert featurizing._pool_for(COUNT) is None
    assert featurizing._pool is not None
    started = list(featurizing._pool._processes)
    for process in started:
        # They are still starting. Later it is the group that keeps such signals away.
        os.kill(process, signal.SIGINT)
        os.kill(process, signal.SIGTERM)
    featurizing.start()
    [(_, pieces)] = featurizing.lots(records, COUNT)
    groups = [os.getpgid(process) for process in started]
    featurizing.close()
    assert len(pieces) == -(-COUNT // PIECE)
    assert groups == started


def test_without_processes_pages_are_made_on_the_spot(
    records: list[PlainRecord], caplog: pytest.LogCaptureFixture
) -> None:
    featurizing = PagePool(Signatures(), None, processes=2)
    assert featurizing._pool_for(COUNT) is None
    assert featurizing._pool is not None
    for process in featurizing._pool._processes:
        os.kill(process, signal.SIGKILL)
    with pytest.raises(BrokenProcessPool):
        featurizing.start()
    [(_, pieces)] = featurizing.lots(records, COUNT)
    featurizing.close()
    assert len(pieces) == 1
    assert "did not start" in caplog.text


def test_no_documents_at_all_are_empty_columns(records: list[PlainRecord]) -> None:
    [(_, [piece])] = PagePool(Signatures(), simulated_model()).lots(records[-1:], 1)
    assert piece.bands.shape == (0, 18)
    assert len(piece.documents["url"]) == 0
