"""From records to the columns of documents: the heavy work of the featurizer, in pieces that any core can take.

In processes of their own where there are many pages: reading and hashing release the GIL, but a dozen short kernels a
page wait longer for it than they work. Few pages are done on the spot, which is quicker than handing them over, and so
are all pages until the first of those processes is ready.
"""

import logging
import multiprocessing
import os
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from neardup.errors import RecordError
from neardup.index.psm.flip_model import FlipModel
from neardup.log import PlainRecord, Record
from neardup.messages.document_columns import columns_of
from neardup.messages.pages import canary_note, document_id, read_page, write_page
from neardup.runtime.child_process import belong_to, without_signals
from neardup.runtime.process_tuning import tune_process
from neardup.signatures.packed_sketch import pack_sketch
from neardup.signatures.signature import Signature, Signatures
from neardup.stream.featurizer.shared_records import RecordBatch, SharedSlots
from neardup.types import Document, Page, SkippedPage

PIECE: Final = 64
"""Pages that a process takes at once."""
_ON_THE_SPOT: Final = PIECE
_LOT: Final = 8 * PIECE
"""Pages that come back together from other processes: while they are sent on, the next ones are made."""
_AHEAD: Final = 4
"""Pieces that are handed over for each process before the first of them is waited for."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FeaturizedChunk:
    """What became of some records: documents as columns, with a row of bands and levels each; pages that were skipped.

    `rejected` has the places of the records that are no pages, and why. `levels` is None without a flip model.
    """

    documents: dict[str, Any]
    bands: NDArray[np.uint64]
    levels: NDArray[np.uint8] | None
    skipped: list[SkippedPage]
    rejected: list[tuple[int, RecordError]]


class Chunk(NamedTuple):
    """Some records and their pieces; the places of those that were rejected count from the first of these records."""

    records: Sequence[Record]
    pieces: list[FeaturizedChunk]


class PagePool:
    """Makes pieces, in this process or, given some more, in `processes` others. One object serves all stages."""

    def __init__(self, signatures: Signatures, model: FlipModel | None, processes: int = 1) -> None:
        self._signatures = signatures
        self._model = model
        self._processes = processes
        self._lock = threading.Lock()
        self._pool: ProcessPoolExecutor | None = None
        self._ready: Future[None] = Future()
        self._shelf: SharedSlots | None = None

    def lots(self, records: Sequence[Record], most: int) -> Iterator[Chunk]:
        """All records, in order, at most so many in a lot."""
        pool = self._pool_for(len(records))
        if pool is None:
            for some in _cut(records, most):
                yield Chunk(some, [self.piece(some)])
            return
        lots = list(_cut(records, min(most, _LOT)))
        made = self._made(pool, lots)
        for lot in lots:
            yield Chunk(lot, list(islice(made, -(-len(lot) // PIECE))))

    def piece(self, records: Iterable[Record], start: int = 0) -> FeaturizedChunk:
        """These records, here and now; `start` is the place of the first. Raises nothing, whatever is in them."""
        documents: list[Document] = []
        signatures: list[Signature] = []
        skipped: list[SkippedPage] = []
        rejected: list[tuple[int, RecordError]] = []
        for number, record in enumerate(records, start):
            try:
                page = read_page(record)
                signature = self._signatures.of(page)
            except RecordError as error:
                rejected.append((number, error.without_frames()))
                continue
            place = document_id(record)
            if signature.fingerprint is None or signature.sketches is None:
                skipped.append(SkippedPage(place, page.url, page.fetched_at, signature.skipped or "no fingerprint"))
                continue
            signatures.append(signature)
            documents.append(
                Document(
                    place,
                    page.url,
                    page.fetched_at,
                    signature.fingerprint.value,
                    signature.checksums,
                    len(page.content),
                    pack_sketch(signature.sketches, keep_spots=self._signatures.choices.keep_spots),
                    canary_note(record) or (f"cut: {', '.join(signature.cut)}" if signature.cut else None),
                )
            )
        return FeaturizedChunk(
            columns_of(documents), self._bands(signatures), self._levels(signatures), skipped, rejected
        )

    def start(self) -> None:
        """Have the other processes started, and wait for the first. Otherwise they start when there is much to do."""
        self._pool_for(_ON_THE_SPOT + 1)
        if self._pool is not None:
            self._ready.result()

    def close(self) -> None:
        """End the other processes, if there are any."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None
        if self._shelf is not None:
            self._shelf.close()
            self._shelf = None

    def _made(self, pool: ProcessPoolExecutor, lots: Sequence[Sequence[Record]]) -> Iterator[FeaturizedChunk]:
        """All pieces, in order. Some are handed over before the first is waited for, so that nobody is idle."""
        handed: deque[Future[FeaturizedChunk]] = deque()
        for lot in lots:
            for start in range(0, len(lot), PIECE):
                if len(handed) == _AHEAD * self._processes:
                    yield handed.popleft().result()
                parcel = RecordBatch.of(lot[start : start + PIECE], self._shelf)
                handed.append(pool.submit(_piece, parcel, start))
                if self._shelf is not None and parcel.slot is not None:
                    handed[-1].add_done_callback(partial(_cleared, self._shelf, parcel.slot))
        while handed:
            yield handed.popleft().result()

    def _bands(self, signatures: Sequence[Signature]) -> NDArray[np.uint64]:
        rows = [each.sketches.bands for each in signatures if each.sketches is not None]
        return np.array(rows, np.uint64).reshape(len(signatures), self._signatures.choices.bands.k)

    def _levels(self, signatures: Sequence[Signature]) -> NDArray[np.uint8] | None:
        if self._model is None:
            return None
        # Tables count bits from the most significant one.
        rows = [each.fingerprint.weights[::-1] for each in signatures if each.fingerprint is not None]
        return self._model.levels_of(np.array(rows, np.float64).reshape(-1, 64))

    def _pool_for(self, count: int) -> ProcessPoolExecutor | None:
        """Those who will make pieces of so many records, if they can now."""
        if self._processes == 1 or count <= _ON_THE_SPOT:
            return None
        with self._lock:
            if self._pool is None:
                self._shelf = SharedSlots.make()
                self._pool = ProcessPoolExecutor(
                    self._processes,
                    # Not fork: this process has threads.
                    mp_context=multiprocessing.get_context("spawn"),
                    initializer=_start,
                    initargs=(self._signatures.choices, self._model, self._shelf, os.getpid()),
                )
                with without_signals():
                    self._ready, *_ = [self._pool.submit(_nothing) for _ in range(self._processes)]
            if not self._ready.done():
                return None
            if (error := self._ready.exception()) is not None:
                logger.warning("pages are featurized without other processes, which did not start: %r", error)
                self._processes = 1
                return None
            return self._pool


_own: PagePool
"""In a process of the pool: its own maker of pieces."""
_own_shelf: SharedSlots | None
"""In a process of the pool: where the values of parcels are."""


def _start(choices: Any, model: FlipModel | None, shelf: SharedSlots | None, parent: int) -> None:
    global _own, _own_shelf
    belong_to(parent)
    _own_shelf = shelf
    _own = PagePool(Signatures(choices, everything=False), model)
    _own.piece([PlainRecord("", 0, 0, 0, None, write_page(page), ()) for page in _first_pages()])
    tune_process()


def _first_pages() -> Iterator[Page]:
    """What loads the kernels: a process that has not is not ready."""
    for letters in ("plain words", "für Wörter", "слова"):
        text = " ".join(f"<p>{letters} {number} <a href=/{number}>" for number in range(100))
        yield Page("http://example.com/", html=text.encode())


def _nothing() -> None:
    """Whoever does it has started."""


def _piece(parcel: RecordBatch, start: int) -> FeaturizedChunk:
    return _own.piece(parcel.unpacked(_own_shelf), start)


def _cleared(shelf: SharedSlots, slot: int, _: "Future[FeaturizedChunk]") -> None:
    shelf.clear(slot)


def _cut(records: Sequence[Record], size: int) -> Iterator[Sequence[Record]]:
    return (records[start : start + size] for start in range(0, len(records), size))
