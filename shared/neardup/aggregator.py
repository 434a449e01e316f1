"""The aggregator: owns documents by their checksum and tells the crawler about each page.

What it answers today is the first of the three levels of identity: pages with the same bytes. The first
in the order of all pages is unique, the others are its duplicates. A page that comes late but stands earlier in
the order takes over; the one that was first until then gets a revised verdict.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import msgpack

from neardup import metrics
from neardup.directory import Directory
from neardup.log import Output, Record
from neardup.registrations import read_registrations
from neardup.stage import Stage, Waves, decoded
from neardup.types import Document, DocumentId, Kind, PageRef, Relation, Verdict
from neardup.verdict import write_verdict


class Aggregator(Stage):
    """One owner. State: the first document of every checksum, and the revision last said of every document."""

    name = "aggregator"

    def __init__(self, *, partition: str, verdicts: str, form: str, clock: Callable[[], float]) -> None:
        self._partition = partition
        self._verdicts = verdicts
        self._form = form
        self._clock = clock
        self._directory: Directory
        self._next = 0

    def open(self, directory: Path) -> int | None:
        """Where the directory says."""
        self._directory = Directory(directory, self._partition)
        self._next = self._directory.offset
        return self._next

    def process(self, records: Sequence[Record]) -> Waves:
        """One wave: verdicts, keyed by url."""
        batches, rejected = decoded(records, lambda record: read_registrations(record.value))
        verdicts = [verdict for _, documents in batches for document in documents for verdict in self._settle(document)]
        self._next = records[-1].offset + 1
        wave = [
            Output(self._verdicts, None, verdict.url.encode(), write_verdict(verdict, self._form))
            for verdict in verdicts
        ]
        for verdict in verdicts:
            metrics.VERDICTS.labels(verdict.verdict, verdict.relation or "none").inc()
        return Waves([wave], rejected)

    def checkpoint(self) -> int:
        """Directory and offset, in one write."""
        self._directory.save(self._next)
        return self._next

    def close(self) -> None:
        """Release the directory."""
        self._directory.close()

    def _settle(self, document: Document) -> list[Verdict]:
        said = b"said" + document.checksum + msgpack.packb(document.id)
        if self._directory.get(said) is not None:
            return []  # registered again after a restart: it has its verdict
        self._directory.put(said, b"")
        first = self._first_of(document.checksum)
        if first is None:
            self._remember_first(document)
            return [self._verdict(document, None, revision=0)]
        if document.id > first.id:
            return [self._verdict(document, first, revision=0)]
        self._remember_first(document)
        # The former first was told "unique" once, so this is its second verdict, and its last.
        return [self._verdict(document, None, revision=0), self._verdict(first, document, revision=1)]

    def _verdict(self, document: Document, original: Document | None, *, revision: int) -> Verdict:
        reference = None if original is None else PageRef(original.url, str(original.id))
        return Verdict(
            url=document.url,
            document=str(document.id),
            fetched_at=document.fetched_at,
            verdict=Kind.UNIQUE if original is None else Kind.DUPLICATE,
            revision=revision,
            duplicate_of=reference,
            relation=None if original is None else Relation.IDENTICAL,
            same_url=original is not None and original.url == document.url,
            first_of_group=reference,
            signature_version="bytes-blake2b-128",
            latency_ms=round(self._clock() * 1000 - document.id.timestamp, 3),
        )

    def _first_of(self, checksum: bytes) -> Document | None:
        packed = self._directory.get(b"first" + checksum)
        if packed is None:
            return None
        place, url, fetched_at, size = msgpack.unpackb(packed)
        return Document(DocumentId(*place), url, fetched_at, checksum, size)

    def _remember_first(self, document: Document) -> None:
        packed = msgpack.packb([document.id, document.url, document.fetched_at, document.size])
        self._directory.put(b"first" + document.checksum, packed)
