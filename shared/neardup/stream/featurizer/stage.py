"""The featurizer: pages in, documents out to their owners and probes to the shards. Keeps no state.

Registrations are the first wave and probes the second, so that in every owner's inbox a document's registration comes
before any message that mentions it.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from neardup.index.plan.owners import owners_among, rows_by_owner
from neardup.index.plan.plan import Plan
from neardup.index.plan.routing import Routing
from neardup.log import Output, Record
from neardup.messages.dead_letters import Rejection
from neardup.messages.document_columns import joined
from neardup.messages.probes import Probes, concatenated, write_probes
from neardup.messages.registrations import write_registrations, write_skipped
from neardup.messages.topics import Topics
from neardup.runtime.stage import Stage, Waves
from neardup.stream.featurizer.page_pool import Chunk, FeaturizedChunk
from neardup.types import AFTER_ALL, BatchId, SkippedPage

_PROBE_BYTES: Final = 640 * 1024
"""Of a batch's probes for one partition, whatever a poll brought: far less than a broker takes."""


class Pieces(Protocol):
    """What makes documents of records: `Featurizing`, which reads pages, or what has read them before."""

    def lots(self, records: Sequence[Record], most: int) -> Iterator[Chunk]:
        """All records, in order, at most so many in a lot."""


class Featurizer(Stage):
    """Turns pages into documents, registers each with its owner, and probes the tables for it."""

    name = "featurizer"

    def __init__(self, *, featurizing: Pieces, plan: Plan, topics: Topics, owners: int) -> None:
        self._featurizing = featurizing
        self._plan = plan
        self._routing = Routing(plan)
        self._topics = topics
        self._owners = owners
        self._most_pages = _PROBE_BYTES // _bytes_of_probes(plan)
        self._next = 0

    def open(self, directory: Path) -> int | None:
        """Nothing to load."""
        return None

    def process(self, records: Sequence[Record]) -> Waves:
        """Two waves: registrations, then probes."""
        self._next = records[-1].offset + 1
        first: list[Output] = []
        second: list[Output] = []
        rejected: list[Rejection] = []
        for lot in self._featurizing.lots(records, self._most_pages):
            self._take(*lot, first, second, rejected)
        return Waves([first, second], rejected)

    def checkpoint(self) -> int:
        """Everything processed is safe: there is nothing to save."""
        return self._next

    def _take(
        self,
        records: Sequence[Record],
        pieces: Sequence[FeaturizedChunk],
        first: list[Output],
        second: list[Output],
        rejected: list[Rejection],
    ) -> None:
        batch = BatchId(records[0].partition, records[0].offset, records[-1].offset)
        rejected += [Rejection(records[number], error) for piece in pieces for number, error in piece.rejected]
        documents = joined([piece.documents for piece in pieces])
        bands = concatenated([piece.bands for piece in pieces])
        levels = [piece.levels for piece in pieces if piece.levels is not None]
        probes = self._probes(batch, documents, bands, concatenated(levels) if levels else None)
        first += self._registrations(batch, documents, probes)
        first += self._skipped([page for piece in pieces for page in piece.skipped])
        second += [
            Output(self._topics.probes, partition, None, write_probes(each, self._plan.digest))
            for partition, each in sorted(probes.items())
        ]

    def _probes(
        self,
        batch: BatchId,
        documents: dict[str, Any],
        bands: NDArray[np.uint64],
        levels: NDArray[np.uint8] | None,
    ) -> dict[int, Probes]:
        """By shard partition."""
        probes: dict[int, Probes] = {}
        fingerprints = documents["fingerprint"]
        is_canary = documents["id"][:, 0] == AFTER_ALL
        if not fingerprints.size:
            return probes
        for number, table in enumerate(self._plan.tables):
            keys = table.keys_of(fingerprints) if self._plan.slice_bits else fingerprints
            for partition, chosen in _grouped(self._routing.partitions_of_keys(number, keys)):
                own_levels = None if levels is None else levels[chosen]
                probes[partition] = Probes(batch, fingerprints[chosen], None, own_levels, is_canary[chosen])
        if self._plan.bands:
            # A page after the other, with all its bands.
            keys, rows = bands.ravel(), np.repeat(np.arange(fingerprints.size), bands.shape[1])
            for partition, chosen in _grouped(self._routing.partitions_of_buckets(keys)):
                of_page = rows[chosen]
                probes[partition] = Probes(batch, fingerprints[of_page], keys[chosen], None, is_canary[of_page])
        return probes

    def _registrations(self, batch: BatchId, documents: dict[str, Any], probes: dict[int, Probes]) -> list[Output]:
        fingerprints = documents["fingerprint"]
        rows = rows_by_owner(fingerprints, self._owners)
        expected: dict[int, list[int]] = {owner: [] for owner, _ in rows}
        for partition, probe in sorted(probes.items()):
            # A table that is not cut into slices is asked about every document.
            is_whole = probe.keys is None and probe.fingerprints.size == fingerprints.size
            for owner in expected if is_whole else owners_among(probe.fingerprints, self._owners):
                expected[owner].append(partition)
        everything = range(fingerprints.size)
        return [
            Output(self._topics.inbox, owner, None, message)
            for owner, own in rows
            for message in write_registrations(
                batch,
                expected[owner],
                documents,
                everything if isinstance(own, slice) else own.tolist(),
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


def _bytes_of_probes(plan: Plan) -> int:
    """Of a page, at most, for one partition: a fingerprint with its levels, or one with a key for each band."""
    return max(8 + 64, 16 * plan.bands)


def _grouped(partitions: NDArray[np.int64]) -> list[tuple[int, NDArray[np.int64] | slice]]:
    """(partition, which of the rows), in the order of the rows."""
    first = int(partitions[0])
    if (partitions == first).all():
        return [(first, slice(None))]
    return [(int(each), np.flatnonzero(partitions == each)) for each in np.unique(partitions)]
