"""The stage of the recluster service: writes judged documents and forget orders from the topic into the corpus.

The corpus is the only state of this stage. The name of each file has the offsets that it covers, and reading resumes
after the last of them. Documents are buffered until there are enough for a file or until the oldest one has waited long
enough. A full file is staged at once under a temporary name and published by the next checkpoint, so every document in
the corpus comes from a committed offset. A file holds either documents or forget orders, so each change between the two
starts a new file.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Protocol

from neardup import metrics
from neardup.errors import WrongPlan
from neardup.log import Record
from neardup.messages import wire
from neardup.messages.forgotten import FORGOTTEN, Forgotten, forgotten_of, together
from neardup.messages.settled import DOCUMENTS, Batch, batch_of
from neardup.offline.corpus.corpus import Corpus, CorpusFile, ForgottenFile
from neardup.runtime.stage import Stage, Waves, decoded

_SCHEMAS: Final = dict((DOCUMENTS, FORGOTTEN))
FILE_BYTES: Final = 64 << 20
"""Approximate size in bytes of the messages that make a file."""


class BatchObserver(Protocol):
    """A receiver of each batch of judged documents, including batches that are read again after a restart."""

    def take(self, batch: Batch) -> None:
        """Process the next batch."""

    def close(self) -> None:
        """Release resources. No batch follows."""


class Archive(Stage):
    """The archive of one partition of the documents topic. Its only output is the corpus, which workers share."""

    name = "recluster"

    def __init__(
        self,
        corpus: Corpus,
        *,
        partition: int,
        signature_version: str,
        longest_seconds: float,
        clock: Callable[[], float],
        watches: Sequence[BatchObserver] = (),
    ) -> None:
        self._corpus, self._partition, self._signature = corpus, partition, signature_version
        self._longest_seconds, self._clock = longest_seconds, clock
        self._observers = watches
        self._pending: list[Batch] = []
        self._forgotten: list[Forgotten] = []
        self._pending_bytes = 0
        self._pending_since = 0.0
        self._prepared: list[CorpusFile] = []
        self._first = 0
        """First offset that no published or staged file covers."""
        self._next = 0

    def open(self, directory: Path) -> int | None:
        """Remove staged files and return the first offset that the corpus does not cover."""
        self._corpus.discard_prepared(self._partition)
        self._first = self._next = self._corpus.end(self._partition)
        return self._first

    def process(self, records: Sequence[Record]) -> Waves:
        """Buffer the messages and stage full files. Produces no output."""
        messages, rejected = decoded(records, self._read)
        if messages and not self._has_pending:
            self._pending_since = self._clock()
        for record, message in messages:
            if isinstance(message, Forgotten):
                if self._pending:
                    self._prepare()
                self._forgotten.append(message)
            else:
                if self._forgotten:
                    self._prepare()
                for observer in self._observers:
                    observer.take(message)
                self._pending.append(message)
            self._pending_bytes += len(record.value or b"")
            self._next = record.offset + 1
            if self._pending_bytes >= FILE_BYTES:
                self._prepare()
        self._next = records[-1].offset + 1
        return Waves(rejected=rejected)

    def checkpoint(self) -> int:
        """Publish staged files and the buffer if it is old enough. Return the offset to resume from."""
        if self._has_pending and self._clock() - self._pending_since >= self._longest_seconds:
            self._prepare()
        for file in self._prepared:
            self._corpus.publish(file)
        self._prepared = []
        return self._first if self._has_pending else self._next

    def close(self) -> None:
        """Close the observers. Buffered documents are read again after a restart."""
        for observer in self._observers:
            observer.close()

    def after_gap(self, directory: Path, group: str) -> str:
        """Return advice for the operator. The corpus is shared, so it must not be deleted because of a gap."""
        return (
            "restore a newer copy of the corpus, or start a new corpus by setting NEARDUP_CORPUS to another folder or "
            f"address: it receives the documents that {group} can still read. The old corpus stays unchanged and "
            "readable"
        )

    @property
    def _has_pending(self) -> bool:
        return bool(self._pending or self._forgotten)

    def _prepare(self) -> None:
        """Stage the buffer as a file. The buffer holds either documents or forget orders."""
        covered = self._partition, self._first, self._next - 1
        if self._forgotten:
            orders = ForgottenFile(*covered)
            self._corpus.prepare_forgotten(orders, together(self._forgotten))
            self._prepared.append(orders)
        else:
            file = CorpusFile(*covered)
            self._corpus.prepare(file, self._pending)
            metrics.ARCHIVED.inc(sum(len(batch.documents) for batch in self._pending))
            self._prepared.append(file)
        self._pending, self._forgotten, self._pending_bytes, self._first = [], [], 0, self._next

    def _read(self, record: Record) -> Batch | Forgotten:
        kind, body = wire.decode_any(record.value, _SCHEMAS)
        if kind == FORGOTTEN.kind:
            return forgotten_of(body)
        batch = batch_of(body)
        if batch.signature_version != self._signature:
            raise WrongPlan(
                f"expected documents with signatures {self._signature}, got {batch.signature_version}: give every "
                "service the same settings"
            )
        return batch
