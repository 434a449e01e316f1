"""An owner with its store, driven one document at a time, without messages."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from neardup.index.plan.routing import owner_of
from neardup.matching.rule import Thresholds
from neardup.messages.answers import Answers
from neardup.signatures.bands import BandFilter
from neardup.stream.aggregator.canaries import PendingCanaries
from neardup.stream.aggregator.directory import Directory
from neardup.stream.aggregator.owner import Outbox, Owner, SettledVerdict
from neardup.stream.aggregator.pending import PendingDocuments
from neardup.stream.aggregator.store import Store
from neardup.types import BatchId, Document, DocumentId, Kind
from tests.support.fingerprints import words

K = 3
TABLES = 4
Summary = tuple[int, Kind, int, int | None]
"""A short form of a verdict: offset, kind, revision, and the offset of the page that is duplicated."""


class Desk:
    """An owner with its store and its outbox."""

    def __init__(
        self,
        store: Store,
        *,
        number: int = 0,
        owners: int = 1,
        bands: BandFilter | None = None,
        most_variants: int = 8,
        most_candidates: int = 1000,
    ) -> None:
        self.owner = Owner(
            Directory(store), PendingDocuments(store), PendingCanaries(store),
            number=number, owners=owners, k=K, tables=TABLES,
            bands=bands, thresholds=Thresholds(), most_variants=most_variants, most_candidates=most_candidates,
        )  # fmt: skip
        self.store = store
        self.out = Outbox()
        self._read = 0

    def register(self, document: Document, batch: BatchId | None = None) -> None:
        """Register a document in a batch that shard partition 0 will answer; by default in a batch of its own."""
        self.owner.register(document, batch or _own(document), [0], self.out)

    def answer(
        self, document: Document, candidates: Mapping[int, int] | None = None, batch: BatchId | None = None
    ) -> None:
        """Complete the batch with the candidates that shards found: fingerprint → number of the table."""
        found = candidates or {}
        for fingerprint, table in found.items():
            pairs = words([document.fingerprint]), words([fingerprint])
            self.owner.on_answers(Answers(1, (), *pairs), table, self.out)
        self.owner.on_answers(Answers(0, (batch or _own(document),), words([]), words([])), 0, self.out)

    def take(self, document: Document, candidates: Mapping[int, int] | None = None) -> list[Summary]:
        """Register a document, complete its batch, and return the new verdicts."""
        self.register(document)
        self.answer(document, candidates)
        return self.summaries()

    def verdicts(self) -> list[SettledVerdict]:
        """Return the verdicts since the last call."""
        new = self.out.verdicts[self._read :]
        self._read = len(self.out.verdicts)
        return new

    def summaries(self) -> list[Summary]:
        """Return the short forms of the verdicts since the last call."""
        return [
            (each.document.id.offset, each.kind, each.revision, None if each.match is None else each.match.id.offset)
            for each in self.verdicts()
        ]


@contextmanager
def desk(path: Path, **choices: Any) -> Iterator[Desk]:
    """Open a desk in a directory."""
    store = Store(path, "p")
    try:
        yield Desk(store, **choices)
    finally:
        store.close()


def owned_by(owner: int, owners: int, *, near: int = 0, count: int = 1) -> list[int]:
    """Return fingerprints of an owner that differ from `near` in one bit each."""
    found = [near ^ 1 << bit for bit in range(64) if owner_of(near ^ 1 << bit, owners) == owner]
    assert len(found) >= count
    return found[:count]


def _own(document: Document) -> BatchId:
    place: DocumentId = document.id
    return BatchId(place.partition, place.offset, place.offset)
