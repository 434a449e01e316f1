"""The stage of the featurizer: reads pages, registers documents with their owners and probes the shards.

Registrations are the first wave and probes the second. In every owner's inbox, the registration of a document therefore
comes before any other message about the document. The stage keeps no state.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from neardup.index.plan.plan import Plan
from neardup.index.plan.routing import Routing, owners_among, rows_by_owner
from neardup.log import Output, Record
from neardup.messages.dead_letters import Rejection
from neardup.messages.document_columns import DocumentColumns
from neardup.messages.probes import Probes, concatenated, write_probes
from neardup.messages.registrations import write_registrations, write_skipped
from neardup.messages.topics import Topics
from neardup.runtime.stage import Stage, Waves
from neardup.stream.featurizer.page_pool import FeaturizedBatch
from neardup.types import AFTER_ALL, BatchId, SkippedPage

_PROBE_BYTES: Final = 640 * 1024
"""Maximum size in bytes of a batch's probes for one partition, far below a broker's limit. Polls may be larger."""


class BatchFeaturizer(Protocol):
    """Turns records into featurized batches: `PagePool` from pages, `replay.recorded.Recorded` from a corpus."""

    def featurize(self, records: Sequence[Record], batch_size: int) -> Iterator[FeaturizedBatch]:
        """Yield all records in order, in batches of at most `batch_size`."""


class Featurizer(Stage):
    """Turns pages into documents, registers each with its owner, and probes the tables for it."""

    name = "featurizer"

    def __init__(self, *, batch_featurizer: BatchFeaturizer, plan: Plan, topics: Topics, owners: int) -> None:
        self._batch_featurizer = batch_featurizer
        self._plan = plan
        self._routing = Routing(plan)
        self._topics = topics
        self._owners = owners
        self._batch_size = _PROBE_BYTES // _probe_bytes_per_page(plan)
        self._next = 0

    def open(self, directory: Path) -> int | None:
        """Return None: there is no state to load."""
        return None

    def process(self, records: Sequence[Record]) -> Waves:
        """Return two waves, registrations and then probes."""
        self._next = records[-1].offset + 1
        inbox: list[Output] = []
        probes: list[Output] = []
        rejected: list[Rejection] = []
        for batch in self._batch_featurizer.featurize(records, self._batch_size):
            rejected += [
                Rejection(batch.records[index], error) for chunk in batch.chunks for index, error in chunk.rejected
            ]
            self._write(batch, inbox, probes)
        return Waves([inbox, probes], rejected)

    def checkpoint(self) -> int:
        """Return the next offset: there is nothing to save."""
        return self._next

    def _write(self, batch: FeaturizedBatch, inbox: list[Output], probes: list[Output]) -> None:
        """Append the messages of a batch to the two waves."""
        records, chunks = batch
        batch_id = BatchId(records[0].partition, records[0].offset, records[-1].offset)
        documents = DocumentColumns.concatenate([chunk.documents for chunk in chunks])
        bands = concatenated([chunk.bands for chunk in chunks])
        levels = [chunk.levels for chunk in chunks if chunk.levels is not None]
        by_partition = self._probes(batch_id, documents, bands, concatenated(levels) if levels else None)
        inbox += self._registrations(batch_id, documents, by_partition)
        inbox += self._skipped([page for chunk in chunks for page in chunk.skipped])
        probes += [
            Output(self._topics.probes, partition, None, write_probes(each, self._plan.digest))
            for partition, each in sorted(by_partition.items())
        ]

    def _probes(
        self,
        batch: BatchId,
        documents: DocumentColumns,
        bands: NDArray[np.uint64],
        levels: NDArray[np.uint8] | None,
    ) -> dict[int, Probes]:
        """Return the probes by shard partition."""
        probes: dict[int, Probes] = {}
        fingerprints = documents.fingerprint
        is_canary = documents.id[:, 0] == AFTER_ALL
        if not fingerprints.size:
            return probes
        for number, table in enumerate(self._plan.tables):
            keys = table.keys_of(fingerprints) if self._plan.slice_bits else fingerprints
            for partition, chosen in _grouped(self._routing.partitions_of_keys(number, keys)):
                own_levels = None if levels is None else levels[chosen]
                probes[partition] = Probes(batch, fingerprints[chosen], None, own_levels, is_canary[chosen])
        if self._plan.bands:
            # One row per band, page by page.
            keys, rows = bands.ravel(), np.repeat(np.arange(fingerprints.size), bands.shape[1])
            for partition, chosen in _grouped(self._routing.partitions_of_buckets(keys)):
                of_page = rows[chosen]
                probes[partition] = Probes(batch, fingerprints[of_page], keys[chosen], None, is_canary[of_page])
        return probes

    def _registrations(self, batch: BatchId, documents: DocumentColumns, probes: dict[int, Probes]) -> list[Output]:
        fingerprints = documents.fingerprint
        rows = rows_by_owner(fingerprints, self._owners)
        expected: dict[int, list[int]] = {owner: [] for owner, _ in rows}
        for partition, probe in sorted(probes.items()):
            # A partition that is probed for every document answers every owner, so the owners need not be computed.
            is_whole = probe.keys is None and probe.fingerprints.size == fingerprints.size
            for owner in expected if is_whole else owners_among(probe.fingerprints, self._owners):
                expected[owner].append(partition)
        all_rows = range(len(documents))
        return [
            Output(self._topics.inbox, owner, None, message)
            for owner, own in rows
            for message in write_registrations(
                batch,
                expected[owner],
                documents,
                all_rows if isinstance(own, slice) else own.tolist(),
                self._plan.digest,
            )
        ]

    def _skipped(self, pages: Sequence[SkippedPage]) -> list[Output]:
        by_owner: dict[int, list[SkippedPage]] = {}
        for page in pages:
            by_owner.setdefault(page.id.offset % self._owners, []).append(page)
        return [
            Output(self._topics.inbox, owner, None, message)
            for owner, some in sorted(by_owner.items())
            for message in write_skipped(some)
        ]


def _probe_bytes_per_page(plan: Plan) -> int:
    """Return the maximum size in bytes of a page's probes for one partition.

    The probe of a permuted table is a fingerprint with its levels. A bucket table has a probe per band, each a
    fingerprint and a key.
    """
    return max(8 + 64, 16 * plan.bands)


def _grouped(partitions: NDArray[np.int64]) -> list[tuple[int, NDArray[np.int64] | slice]]:
    """Return the partitions, each with its rows in ascending order."""
    first = int(partitions[0])
    if (partitions == first).all():
        return [(first, slice(None))]
    return [(int(each), np.flatnonzero(partitions == each)) for each in np.unique(partitions)]
