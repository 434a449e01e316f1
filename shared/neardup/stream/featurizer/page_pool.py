"""The process pool that turns pages into the columns of documents, which is most of the featurizer's work.

The pool has processes, not threads: reading and hashing release the GIL, but a dozen short kernels per page wait longer
for the GIL than they run. A batch too small to be worth handing over is featurized in the calling process, as is every
batch until the first process of the pool has started.
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
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from neardup.errors import RecordError
from neardup.index.psm.flip_model import FlipModel
from neardup.log import PlainRecord, Record
from neardup.messages.document_columns import DocumentColumns, DocumentColumnsBuilder
from neardup.messages.pages import canary_note, document_id, read_page, write_page
from neardup.runtime.child_process import belong_to, without_signals
from neardup.runtime.process_tuning import tune_process
from neardup.signatures.packed_sketch import pack_sketch
from neardup.signatures.signature import Signature, SignatureOptions, Signatures
from neardup.stream.featurizer.shared_records import PackedRecords, SharedSlots
from neardup.types import Page, SkippedPage

CHUNK_RECORDS: Final = 64
"""Number of records in one task of a pool process."""
_INLINE_RECORDS: Final = CHUNK_RECORDS
"""Maximum number of records that are featurized in the calling process instead of the pool."""
_POOLED_BATCH_RECORDS: Final = 8 * CHUNK_RECORDS
"""Maximum size of a batch from the pool: while the caller sends one batch, the pool works on the next."""
_CHUNKS_IN_FLIGHT: Final = 4
"""Chunks per process that are submitted before the result of the first is awaited."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class FeaturizedChunk:
    """The result for consecutive records: documents, skipped pages and rejected records."""

    documents: DocumentColumns
    bands: NDArray[np.uint64]
    """One row of band keys per document."""
    levels: NDArray[np.uint8] | None
    """One row of flip levels per document; None without a flip model."""
    skipped: list[SkippedPage]
    rejected: list[tuple[int, RecordError]]
    """Records that are not valid pages: their index in the batch, and the reason."""


class FeaturizedBatch(NamedTuple):
    """Records and the chunks made of them, in order. Each rejected record is identified by its index in `records`."""

    records: Sequence[Record]
    chunks: list[FeaturizedChunk]


class PagePool:
    """Featurizes records, in the calling process or in `processes` others. All stages of a process share one pool."""

    def __init__(self, signatures: Signatures, model: FlipModel | None, processes: int = 1) -> None:
        self._signatures = signatures
        self._model = model
        self._processes = processes
        self._lock = threading.Lock()
        self._executor: ProcessPoolExecutor | None = None
        self._ready: Future[None] = Future()
        self._slots: SharedSlots | None = None

    def featurize(self, records: Sequence[Record], batch_size: int) -> Iterator[FeaturizedBatch]:
        """Yield all records in order, in batches of at most `batch_size`."""
        executor = self._executor_for(len(records))
        if executor is None:
            for batch in _cut(records, batch_size):
                yield FeaturizedBatch(batch, [self.featurize_chunk(batch)])
            return
        batches = list(_cut(records, min(batch_size, _POOLED_BATCH_RECORDS)))
        chunks = self._chunks(executor, batches)
        for batch in batches:
            yield FeaturizedBatch(batch, list(islice(chunks, -(-len(batch) // CHUNK_RECORDS))))

    def featurize_chunk(self, records: Iterable[Record], start: int = 0) -> FeaturizedChunk:
        """Featurize records in the calling process. Raises nothing, whatever the records contain.

        `start` is the index of the first record in its batch.
        """
        documents = DocumentColumnsBuilder()
        signatures: list[Signature] = []
        skipped: list[SkippedPage] = []
        rejected: list[tuple[int, RecordError]] = []
        for index, record in enumerate(records, start):
            try:
                page = read_page(record)
                signature = self._signatures.of(page)
            except RecordError as error:
                rejected.append((index, error.without_frames()))
                continue
            document = document_id(record)
            if signature.fingerprint is None or signature.sketches is None:
                reason = signature.skipped or "no fingerprint"
                skipped.append(SkippedPage(document, page.url, page.fetched_at, reason))
                continue
            signatures.append(signature)
            documents.append(
                id=document,
                url=page.url,
                fetched_at=page.fetched_at,
                fingerprint=signature.fingerprint.value,
                checksums=signature.checksums,
                size=len(page.content),
                sketch=pack_sketch(signature.sketches, keep_spots=self._signatures.choices.keep_spots),
                note=canary_note(record) or (f"cut: {', '.join(signature.cut)}" if signature.cut else None),
            )
        return FeaturizedChunk(
            documents=documents.build(),
            bands=self._bands(signatures),
            levels=self._levels(signatures),
            skipped=skipped,
            rejected=rejected,
        )

    def start(self) -> None:
        """Start the processes and wait for the first. Without this call they start with the first large batch."""
        self._executor_for(_INLINE_RECORDS + 1)
        if self._executor is not None:
            self._ready.result()

    def close(self) -> None:
        """Stop the processes, if any were started."""
        if self._executor is not None:
            self._executor.shutdown(cancel_futures=True)
            self._executor = None
        if self._slots is not None:
            self._slots.close()
            self._slots = None

    def _chunks(self, executor: ProcessPoolExecutor, batches: Sequence[Sequence[Record]]) -> Iterator[FeaturizedChunk]:
        """Yield the chunks of all batches in order. Several are in flight at a time, so that no process is idle."""
        in_flight: deque[Future[FeaturizedChunk]] = deque()
        for batch in batches:
            for start in range(0, len(batch), CHUNK_RECORDS):
                if len(in_flight) == _CHUNKS_IN_FLIGHT * self._processes:
                    yield in_flight.popleft().result()
                packed = PackedRecords.pack(batch[start : start + CHUNK_RECORDS], self._slots)
                in_flight.append(executor.submit(_featurize_in_worker, packed, start))
                if self._slots is not None and packed.slot is not None:
                    in_flight[-1].add_done_callback(partial(_release, self._slots, packed.slot))
        while in_flight:
            yield in_flight.popleft().result()

    def _bands(self, signatures: Sequence[Signature]) -> NDArray[np.uint64]:
        rows = [each.sketches.bands for each in signatures if each.sketches is not None]
        return np.array(rows, np.uint64).reshape(len(signatures), self._signatures.choices.bands.k)

    def _levels(self, signatures: Sequence[Signature]) -> NDArray[np.uint8] | None:
        if self._model is None:
            return None
        # Tables count bits from the most significant one.
        rows = [each.fingerprint.weights[::-1] for each in signatures if each.fingerprint is not None]
        return self._model.levels_of(np.array(rows, np.float64).reshape(-1, 64))

    def _executor_for(self, count: int) -> ProcessPoolExecutor | None:
        """Return the executor for `count` records; None if the calling process should featurize them itself."""
        if self._processes == 1 or count <= _INLINE_RECORDS:
            return None
        with self._lock:
            if self._executor is None:
                self._slots = SharedSlots.create()
                self._executor = ProcessPoolExecutor(
                    self._processes,
                    # Forking is unsafe, because this process has threads.
                    mp_context=multiprocessing.get_context("spawn"),
                    initializer=_start_worker,
                    initargs=(self._signatures.choices, self._model, self._slots, os.getpid()),
                )
                with without_signals():
                    self._ready, *_ = [self._executor.submit(_ping) for _ in range(self._processes)]
            if not self._ready.done():
                return None
            if (error := self._ready.exception()) is not None:
                logger.warning("the process pool did not start, so pages are featurized in the main process: %r", error)
                self._processes = 1
                return None
            return self._executor


_worker_pool: PagePool
"""The featurizer of this process, set only in processes of the pool."""
_worker_slots: SharedSlots | None
"""The slots that hold the values of records, set only in processes of the pool."""


def _start_worker(options: SignatureOptions, model: FlipModel | None, slots: SharedSlots | None, parent: int) -> None:
    global _worker_pool, _worker_slots
    belong_to(parent)
    _worker_slots = slots
    _worker_pool = PagePool(Signatures(options, everything=False), model)
    # Load the kernels now: the process counts as started only when it can featurize without delay.
    _worker_pool.featurize_chunk([PlainRecord("", 0, 0, 0, None, write_page(page), ()) for page in _warm_up_pages()])
    tune_process()


def _warm_up_pages() -> Iterator[Page]:
    """Yield pages that together call every kernel of the featurizer."""
    for words in ("plain words", "für Wörter", "слова"):
        text = " ".join(f"<p>{words} {number} <a href=/{number}>" for number in range(100))
        yield Page("http://example.com/", html=text.encode())


def _ping() -> None:
    """Do nothing. The task completes as soon as a process has started."""


def _featurize_in_worker(packed: PackedRecords, start: int) -> FeaturizedChunk:
    return _worker_pool.featurize_chunk(packed.unpack(_worker_slots), start)


def _release(slots: SharedSlots, slot: int, _: "Future[FeaturizedChunk]") -> None:
    slots.release(slot)


def _cut(records: Sequence[Record], size: int) -> Iterator[Sequence[Record]]:
    return (records[start : start + size] for start in range(0, len(records), size))
