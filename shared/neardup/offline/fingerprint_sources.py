"""Pairs of documents with fingerprints a few bits apart: a new batch against the whole file, itself included.

Nothing is kept between calls: the gathered fingerprints are the file. The score is the distance in bits.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from neardup import batch
from neardup.batch import BatchSearch, scan_psm
from neardup.design import longest_leading
from neardup.flip_model import simulated_model
from neardup.offline.gathered import Gathered
from neardup.offline.options import Options
from neardup.offline.pairs import Counted, Pairs
from neardup.offline.parallel import CORES
from neardup.psm import Psm
from neardup.table import BITS

TABLES: Final = 10
HEADER: Final = 16
"""Leading bits of which the probabilistic search flips one."""


class HammingSource:
    """Every pair within k bits (Manku 2007 §3.3: tables on the new batch, one scan over the file)."""

    name = "hamming"

    def __init__(self, directory: Path, options: Options) -> None:
        self._options = options

    def pairs(
        self,
        documents: Gathered,
        kept: NDArray[np.bool_],
        first_new: int,
        progress: Callable[[int, int], None],
    ) -> tuple[Pairs, Counted]:
        """See PairSource. Fingerprints that more than `common` documents have are left out."""
        rows = np.flatnonzero(kept)
        file = _File(rows, documents.fingerprint[rows], self._options.common)
        queries = np.unique(file.fingerprints_from(first_new))
        most = max(1, self._options.memory_bytes // (32 * TABLES))
        pieces = [queries[start : start + most] for start in range(0, queries.size, most)]
        found = []
        for done, piece in enumerate(pieces):
            found.append(file.row_pairs(self._near(piece, file.distinct), queries, first_new))
            progress(done + 1, len(pieces))
        pairs = np.sort(np.concatenate([np.empty(0, np.uint64), *found]))
        a, b = (pairs >> np.uint64(32)).astype(np.uint32), pairs.astype(np.uint32)
        distance = np.bitwise_count(documents.fingerprint[a] ^ documents.fingerprint[b])
        return Pairs(a, b, distance.astype(np.float32)), file.common

    def _near(self, queries: NDArray[np.uint64], file: NDArray[np.uint64]) -> batch.Pairs:
        return BatchSearch(queries, longest_leading(self._options.hamming, TABLES)).scan([file], CORES)


class PsmSource(HammingSource):
    """Most pairs within k bits, by one table (Sood & Loguinov 2011 §6.3).

    The corpus has no simhash weights, so no bit is known to be weaker than another: of the leading 16 bits none or any
    one is flipped. That finds pairs that differ in at most one of these: all at a distance of 1, 94% at 2, 85% at 3.
    """

    name = "psm"

    def _near(self, queries: NDArray[np.uint64], file: NDArray[np.uint64]) -> batch.Pairs:
        psm = Psm(simulated_model(), HEADER, attempts=HEADER, k=self._options.hamming, cap=max(1, file.size))
        return scan_psm(psm, queries, np.zeros((queries.size, BITS), np.uint8), [file])


class _File:
    """Rows by fingerprint."""

    def __init__(self, rows: NDArray[np.int64], fingerprints: NDArray[np.uint64], common: int) -> None:
        order = np.argsort(fingerprints, kind="stable")
        distinct, starts, counts = np.unique(fingerprints[order], return_index=True, return_counts=True)
        few = counts <= common
        self._rows = rows[order]
        self.distinct, self._starts, self._counts = distinct[few], starts[few], counts[few]
        self.common = Counted(int((~few).sum()), int(counts[~few].sum()))

    def fingerprints_from(self, first_new: int) -> NDArray[np.uint64]:
        """Those that a row from here on has."""
        last = self._rows[self._starts + self._counts - 1]
        new: NDArray[np.uint64] = self.distinct[last >= first_new]
        return new

    def row_pairs(self, near: batch.Pairs, queries: NDArray[np.uint64], first_new: int) -> NDArray[np.uint64]:
        """Each pair of rows once, a << 32 | b with b from `first_new` on, for pairs of fingerprints near each other."""
        # Where both fingerprints are queries the pair was found twice.
        once = (near.query <= near.fingerprint) | ~np.isin(near.fingerprint, queries)
        one = np.searchsorted(self.distinct, near.query[once])
        other = np.searchsorted(self.distinct, near.fingerprint[once])
        sizes = self._counts[one] * self._counts[other]
        number = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        one, other = np.repeat(one, sizes), np.repeat(other, sizes)
        x = self._rows[self._starts[one] + number // self._counts[other]]
        y = self._rows[self._starts[other] + number % self._counts[other]]
        wanted = (np.maximum(x, y) >= first_new) & ((one != other) | (x < y))
        low, high = np.minimum(x, y)[wanted].astype(np.uint64), np.maximum(x, y)[wanted].astype(np.uint64)
        pairs: NDArray[np.uint64] = low << np.uint64(32) | high
        return pairs
