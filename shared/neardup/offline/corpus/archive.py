"""The stage of the recluster service: settled documents, and what was forgotten, from the topic into the corpus.

The corpus is this stage's state: a file's name says which offsets it covers, and reading goes on after the last of
them. Documents wait in memory until there are enough for a file, or until they have waited long enough. A large file is
prepared beside the corpus at once, and becomes part of it with the next checkpoint: what is in the corpus was settled
by pages that nobody will take back. A file holds documents, or what was forgotten: each change of the two begins one.
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
"""Of messages in a file, about."""


class BatchObserver(Protocol):
    """Looks at settled documents as they come by, those that are read again after a restart included."""

    def take(self, batch: Batch) -> None:
        """The next ones."""

    def close(self) -> None:
        """There will be no more."""


class Archive(Stage):
    """One partition of the documents topic. Writes to the corpus, which workers share, and nowhere else."""

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
        """The first offset that no file covers, prepared ones included."""
        self._next = 0

    def open(self, directory: Path) -> int | None:
        """After what the corpus covers."""
        self._corpus.discard_prepared(self._partition)
        self._first = self._next = self._corpus.end(self._partition)
        return self._first

    def process(self, records: Sequence[Record]) -> Waves:
        """Says nothing: what it learns stays here."""
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
        """Publish what is prepared, and what has waited long enough; the rest is read again after a restart."""
        if self._has_pending and self._clock() - self._pending_since >= self._longest_seconds:
            self._prepare()
        for file in self._prepared:
            self._corpus.publish(file)
        self._prepared = []
        return self._first if self._has_pending else self._next

    def close(self) -> None:
        """What waits is read again."""
        for observer in self._observers:
            observer.close()

    def after_gap(self, directory: Path, group: str) -> str:
        """The state is the corpus, which others share: it is not to be deleted for this."""
        return (
            "restore a newer copy of the corpus, or begin another one with a new folder or address as NEARDUP_CORPUS: "
            f"it takes the documents that {group} can still read. The old corpus stays as it is, and readable"
        )

    @property
    def _has_pending(self) -> bool:
        return bool(self._pending or self._forgotten)

    def _prepare(self) -> None:
        """A file of what waits, which is of one kind."""
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
