"""A shadow sample: a share of the settled documents, each compared with all recent ones without the tables.

If the rule calls a sampled document a duplicate of an earlier recent one, the stream should have called it a duplicate
as well. The share of these documents that the stream did call duplicates estimates recall, independently of tables,
bands and caps. Documents with the same tokens as an earlier one are excluded: they have no sketch, and no table had to
find them.
"""

import struct
from collections import deque
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
import xxhash
from numpy.typing import NDArray

from neardup.kernels.signatures.comparing import compare_with_each, mips_length
from neardup.matching.rule import Thresholds, decide
from neardup.messages.document_columns import DocumentColumns
from neardup.messages.settled import Batch
from neardup.monitoring.recall import Recall
from neardup.signatures.packed_sketch import Likeness, likeness_of
from neardup.types import DocumentId, Relation

_PLACE: Final = struct.Struct(">qqqq")
_WORD: Final = 2.0**64
_SHINGLES: Final = 2
"""The level of the checksum of shingles."""


class _Documents(NamedTuple):
    """The documents of a message. The arrays are those of the message, not copies."""

    ids: list[DocumentId]
    sketch: NDArray[np.uint64]
    ends: NDArray[np.int64]
    shingles: NDArray[np.uint8]
    """The checksum of each document's shingles."""


class Shadow:
    """The shadow sample of one partition. A hash of `seed` and a document's id decides if the document is checked.

    A `share` of the documents is compared with the last `documents` ones. These, and at most one message more, are in
    memory.
    """

    def __init__(self, thresholds: Thresholds, recall: Recall, *, share: float, documents: int, seed: int) -> None:
        self._thresholds = thresholds
        self._recall = recall
        self._share, self._most, self._seed = share, documents, seed
        self._recent: deque[_Documents] = deque()
        self._size = 0

    def take(self, batch: Batch) -> None:
        """Check a share of the documents of a batch, and keep all of them for comparison with later documents."""
        if not self._share:
            return
        some = _documents(batch.documents)
        self._recent.append(some)
        self._size += len(some.ids)
        for row, (start, end) in enumerate(pairwise((0, *some.ends.tolist()))):
            if end > start and self._is_chosen(some.ids[row]) and self._has_duplicated(some, row, start, end):
                self._recall.check(batch.matches[row] is not None)
        while self._size - len(self._recent[0].ids) >= self._most:
            self._size -= len(self._recent.popleft().ids)

    def close(self) -> None:
        """Withdraw the metrics."""
        self._recall.close()

    def _is_chosen(self, document: DocumentId) -> bool:
        return xxhash.xxh3_64_intdigest(_PLACE.pack(self._seed, *document)) / _WORD < self._share

    def _has_duplicated(self, some: _Documents, row: int, start: int, end: int) -> bool:
        """Return whether the rule calls a document a duplicate of an earlier recent one."""
        document, sketch, shingles = some.ids[row], some.sketch[start:end], some.shingles[row]
        return any(
            others.ids[other] < document and self._are_alike(likeness, bool((others.shingles[other] == shingles).all()))
            for others in self._recent
            for other, likeness in _likenesses(sketch, others, self._thresholds)
        )

    def _are_alike(self, likeness: Likeness, same_shingles: bool) -> bool:
        same = Relation.SAME_SHINGLES if same_shingles else None
        return decide(same, likeness.resemblance, likeness.a_in_b, self._thresholds) is not None


def _documents(columns: DocumentColumns) -> _Documents:
    ids = [DocumentId(*place) for place in columns.id.tolist()]
    return _Documents(ids, columns.sketch, columns.sketch_ends, columns.checksum(_SHINGLES))


def _likenesses(sketch: NDArray[np.uint64], some: _Documents, thresholds: Thresholds) -> list[tuple[int, Likeness]]:
    """Return (row, likeness) of the few documents that may pass the rule."""
    out = np.empty((some.ends.size, 4), np.int64)
    compare_with_each(sketch, some.sketch, some.ends, out)
    m = mips_length(sketch)
    least = min(thresholds.resemblance, thresholds.containment) / 2
    rows = np.flatnonzero((out[:, 0] >= least * m) | (out[:, 3] >= least * out[:, 1]) & (out[:, 1] > 0)).tolist()
    return [(row, likeness_of(m, *out[row].tolist())) for row in rows]
