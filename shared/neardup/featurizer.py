"""The featurizer: pages in, documents out to their owners and probes to the shards. Keeps no state.

Registrations are the first wave and probes the second, so that in every owner's inbox a document's registration comes
before any message that mentions it.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from neardup.errors import RecordError
from neardup.log import Output, Record
from neardup.owners import owner_of, owners_of
from neardup.packed_sketch import pack_sketch
from neardup.page import document_id, read_page
from neardup.plan import Plan
from neardup.probes import Probes, write_probes
from neardup.psm import Psm
from neardup.registrations import write_registrations, write_skipped
from neardup.routing import Routing
from neardup.signature import Signature, Signatures
from neardup.stage import Rejection, Stage, Waves
from neardup.topics import Topics
from neardup.types import BatchId, Document, SkippedPage

_PIECE: Final = 32
"""Pages that a thread takes at once."""


class Featurized(NamedTuple):
    """A document and the signatures that its probes are made of."""

    document: Document
    signature: Signature


class Featurizer(Stage):
    """Turns pages into documents, registers each with its owner, and probes the tables for it."""

    name = "featurizer"

    def __init__(
        self,
        *,
        signatures: Signatures,
        plan: Plan,
        topics: Topics,
        owners: int,
        psm: Psm | None = None,
        threads: int = 1,
    ) -> None:
        self._signatures = signatures
        self._plan = plan
        self._routing = Routing(plan)
        self._topics = topics
        self._owners = owners
        self._psm = psm
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="featurize") if threads > 1 else None
        self._next = 0

    def open(self, directory: Path) -> int | None:
        """Nothing to load."""
        return None

    def process(self, records: Sequence[Record]) -> Waves:
        """Two waves: registrations, then probes."""
        self._next = records[-1].offset + 1
        documents: list[Featurized] = []
        skipped: list[SkippedPage] = []
        rejected: list[Rejection] = []
        for made in self._featurized(records):
            match made:
                case Featurized():
                    documents.append(made)
                case SkippedPage():
                    skipped.append(made)
                case _:
                    rejected.append(made)
        batch = BatchId(records[0].partition, records[0].offset, records[-1].offset)
        probes = self._probes(batch, documents) if documents else {}
        first = self._registrations(batch, documents, probes) + self._skipped(skipped)
        second = [
            Output(self._topics.probes, partition, None, write_probes(each, self._plan.digest))
            for partition, each in sorted(probes.items())
        ]
        return Waves([first, second], rejected)

    def checkpoint(self) -> int:
        """Everything processed is safe: there is nothing to save."""
        return self._next

    def close(self) -> None:
        """End the threads."""
        if self._threads is not None:
            self._threads.shutdown()

    def _featurized(self, records: Sequence[Record]) -> list[Featurized | SkippedPage | Rejection]:
        if self._threads is None or len(records) <= _PIECE:
            return [self._of(record) for record in records]
        pieces = [records[start : start + _PIECE] for start in range(0, len(records), _PIECE)]
        done = self._threads.map(lambda piece: [self._of(record) for record in piece], pieces)
        return [made for piece in done for made in piece]

    def _of(self, record: Record) -> Featurized | SkippedPage | Rejection:
        try:
            page = read_page(record)
            signature = self._signatures.of(page)
        except RecordError as error:
            return Rejection(record, error)
        place = document_id(record)
        if signature.fingerprint is None or signature.sketches is None:
            return SkippedPage(place, page.url, page.fetched_at, signature.skipped or "no fingerprint")
        document = Document(
            place,
            page.url,
            page.fetched_at,
            signature.fingerprint.value,
            signature.checksums,
            len(page.content),
            pack_sketch(signature.sketches),
            "; ".join(signature.cut) or None,
        )
        return Featurized(document, signature)

    def _probes(self, batch: BatchId, documents: Sequence[Featurized]) -> dict[int, Probes]:
        """By shard partition."""
        fingerprints = np.array([each.document.fingerprint for each in documents], np.uint64)
        probes: dict[int, Probes] = {}
        levels = None
        if self._psm is not None:
            weights = np.array([_weights(each.signature) for each in documents], np.float64)
            levels = self._psm.model.levels_of(weights)
        for number, table in enumerate(self._plan.tables):
            keys = table.keys_of(fingerprints) if self._plan.slice_bits else fingerprints
            for partition, chosen in _grouped(self._routing.partitions_of_keys(number, keys)):
                probes[partition] = Probes(
                    batch, fingerprints[chosen], None, None if levels is None else levels[chosen]
                )
        if self._plan.bands:
            bands = np.array([_bands(each.signature) for each in documents], np.uint64)
            for band in range(self._plan.bands):
                column = np.ascontiguousarray(bands[:, band])
                for partition, chosen in _grouped(self._routing.partitions_of_buckets(band, column)):
                    probes[partition] = Probes(batch, fingerprints[chosen], column[chosen])
        return probes

    def _registrations(
        self, batch: BatchId, documents: Sequence[Featurized], probes: dict[int, Probes]
    ) -> list[Output]:
        expected: dict[int, list[int]] = {}
        for partition, probe in sorted(probes.items()):
            for owner in np.unique(owners_of(probe.fingerprints, self._owners)).tolist():
                expected.setdefault(owner, []).append(partition)
        by_owner: dict[int, list[Document]] = {}
        for each in documents:
            by_owner.setdefault(owner_of(each.document.fingerprint, self._owners), []).append(each.document)
        return [
            Output(self._topics.inbox, owner, None, message)
            for owner, owned in sorted(by_owner.items())
            for message in write_registrations(batch, expected[owner], owned, self._plan.digest)
        ]

    def _skipped(self, pages: Sequence[SkippedPage]) -> list[Output]:
        by_owner: dict[int, list[SkippedPage]] = {}
        for page in pages:
            by_owner.setdefault(page.id.offset % self._owners, []).append(page)
        return [
            Output(self._topics.inbox, owner, None, write_skipped(some)) for owner, some in sorted(by_owner.items())
        ]


def _weights(signature: Signature) -> NDArray[np.int64]:
    assert signature.fingerprint is not None
    # Tables count bits from the most significant one.
    return signature.fingerprint.weights[::-1]


def _bands(signature: Signature) -> NDArray[np.uint64]:
    assert signature.sketches is not None
    return signature.sketches.bands


def _grouped(partitions: NDArray[np.int64]) -> list[tuple[int, NDArray[np.int64] | slice]]:
    """(partition, which of the rows), in the order of the rows."""
    first = int(partitions[0])
    if (partitions == first).all():
        return [(first, slice(None))]
    return [(int(each), np.flatnonzero(partitions == each)) for each in np.unique(partitions)]
