"""The shadow: a sample of settled documents, compared with every recent one, whatever the tables say.

Where the rule calls such a document a duplicate of a recent one that stands before it, the stream should have called it
a duplicate, too. How often it did is an estimate of recall that knows nothing of tables, bands and caps. Documents with
the same tokens as an earlier one have no part in it: they come without a sketch, and no table had to find them.
"""

import struct
from collections import deque
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
import xxhash
from numpy.typing import NDArray

from neardup.kernels.signatures.comparing import compare_with_each, mips_length
from neardup.matching.rule import Thresholds, decide
from neardup.messages.settled import Batch
from neardup.monitoring.recall import Recall
from neardup.signatures.checksums import CHECKSUM_BYTES
from neardup.signatures.packed_sketch import Likeness, likeness_of
from neardup.types import DocumentId, Relation

_PLACE: Final = struct.Struct(">qqqq")
_WORD: Final = 2.0**64
_OF_SHINGLES: Final = slice(2 * CHECKSUM_BYTES, 3 * CHECKSUM_BYTES)


class _Lot(NamedTuple):
    """The documents of a message, in its own columns."""

    ids: list[DocumentId]
    sketch: NDArray[np.uint64]
    ends: NDArray[np.int64]
    shingles: NDArray[np.uint8]
    """The checksum of each."""


class Shadow:
    """Of one partition of the documents. Deterministic: which documents are checked is a hash of `seed` and their ids.

    Costs a comparison with `documents` others for a `share` of the documents. As many, and at most a message more, are
    in memory.
    """

    def __init__(self, thresholds: Thresholds, recall: Recall, *, share: float, documents: int, seed: int) -> None:
        self._thresholds = thresholds
        self._recall = recall
        self._share, self._most, self._seed = share, documents, seed
        self._recent: deque[_Lot] = deque()
        self._size = 0

    def take(self, batch: Batch) -> None:
        """Check some of these documents, and remember them all for those that come."""
        if not self._share:
            return
        lot = _lot(batch.columns)
        self._recent.append(lot)
        self._size += len(lot.ids)
        for number, (start, end) in enumerate(pairwise((0, *lot.ends.tolist()))):
            if end > start and self._is_chosen(lot.ids[number]) and self._has_duplicated(lot, number, start, end):
                self._recall.check(batch.matches[number] is not None)
        while self._size - len(self._recent[0].ids) >= self._most:
            self._size -= len(self._recent.popleft().ids)

    def close(self) -> None:
        """Report nothing any more."""
        self._recall.close()

    def _is_chosen(self, document: DocumentId) -> bool:
        return xxhash.xxh3_64_intdigest(_PLACE.pack(self._seed, *document)) / _WORD < self._share

    def _has_duplicated(self, lot: _Lot, number: int, start: int, end: int) -> bool:
        """Whether the rule calls a document a duplicate of a recent one before it."""
        document, sketch, shingles = lot.ids[number], lot.sketch[start:end], lot.shingles[number]
        return any(
            other.ids[row] < document and self._are_alike(likeness, bool((other.shingles[row] == shingles).all()))
            for other in self._recent
            for row, likeness in _likenesses(sketch, other, self._thresholds)
        )

    def _are_alike(self, likeness: Likeness, same_shingles: bool) -> bool:
        same = Relation.SAME_SHINGLES if same_shingles else None
        return decide(same, likeness.resemblance, likeness.a_in_b, self._thresholds) is not None


def _lot(columns: dict[str, Any]) -> _Lot:
    ids = [DocumentId(*place) for place in columns["id"].tolist()]
    return _Lot(ids, columns["sketch"], np.cumsum(columns["words"]), columns["checksums"][:, _OF_SHINGLES])


def _likenesses(sketch: NDArray[np.uint64], lot: _Lot, thresholds: Thresholds) -> list[tuple[int, Likeness]]:
    """(row, likeness) of those that are worth a closer look: nearly all have nothing in common with a document."""
    out = np.empty((lot.ends.size, 4), np.int64)
    compare_with_each(sketch, lot.sketch, lot.ends, out)
    m = mips_length(sketch)
    least = min(thresholds.resemblance, thresholds.containment) / 2
    rows = np.flatnonzero((out[:, 0] >= least * m) | (out[:, 3] >= least * out[:, 1]) & (out[:, 1] > 0)).tolist()
    return [(row, likeness_of(m, *out[row].tolist())) for row in rows]
