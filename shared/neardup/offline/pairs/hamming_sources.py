"""Pairs of documents whose fingerprints differ in a few bits: new fingerprints are matched against all fingerprints.

These sources keep no state between calls, because they search the fingerprints of the column store. The score is the
distance in bits.

A pair of fingerprints stands for all pairs of rows that have them, possibly millions. The pairs of rows are therefore
counted in bounded memory, like pairs of rows with shared keys (`counted_runs`).
"""

import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from neardup.index.batch import search as batch
from neardup.index.batch.search import BatchSearch, scan_psm
from neardup.index.plan.design import longest_leading
from neardup.index.plan.table import BITS
from neardup.index.psm.flip_model import simulated_model
from neardup.index.psm.search import Psm
from neardup.offline.corpus.columns import ColumnStore
from neardup.offline.options import Options
from neardup.offline.pairs.counted_runs import RunBuffer, merge_runs
from neardup.offline.pairs.pair_files import pair_files
from neardup.offline.pairs.pair_source import IgnoredKeys, Pairs
from neardup.util.parallel import CORES

TABLES: Final = 10
HEADER: Final = 16
"""Number of leading bits of which the probabilistic search flips at most one."""
_BYTES_A_ROW_PAIR: Final = 256
"""Memory for creating a pair of rows, in bytes: twice the memory needed."""
_BLOCK: Final = 1 << 14
"""Number of pairs whose distances are computed at once."""


class HammingSource:
    """All pairs within k bits (Manku 2007 §3.3): tables of the new fingerprints, and one scan of all fingerprints."""

    name = "hamming"

    def __init__(self, directory: Path, options: Options) -> None:
        self._directory, self._options = directory, options

    def pairs(
        self,
        documents: ColumnStore,
        kept: NDArray[np.bool_],
        first_new: int,
        progress: Callable[[int, int], None],
    ) -> tuple[Pairs, IgnoredKeys]:
        """Return the new pairs as `PairSource` specifies. Fingerprints of more than `common` documents are left out."""
        memory_bytes, row_bits = self._options.memory_bytes, len(documents).bit_length()
        rows = np.flatnonzero(kept)
        file = _FingerprintFile(rows, documents.fingerprint[rows], row_bits, self._options.common)
        queries = np.unique(file.fingerprints_from(first_new))
        most = max(1, memory_bytes // (32 * TABLES))
        pieces = [queries[start : start + most] for start in range(0, queries.size, most)]
        spilled = self._directory / "spilled"
        shutil.rmtree(spilled, ignore_errors=True)
        buffer = RunBuffer(memory_bytes // 2, 1, row_bits, spilled)
        for done, piece in enumerate(pieces):
            near = self._search(piece, file.distinct)
            for some in file.row_pairs(near, queries, first_new, max(1, memory_bytes // _BYTES_A_ROW_PAIR)):
                buffer.add(some)
            progress(done + 1, len(pieces))
        with ThreadPoolExecutor(CORES) as pool, pair_files(self._directory) as found:
            distances = partial(_distances, documents.fingerprint)
            merge_runs(buffer.finish(), row_bits, distances, memory_bytes, pool, found)
            pairs = found.mapped()
        shutil.rmtree(spilled, ignore_errors=True)
        return pairs, file.common

    def _search(self, queries: NDArray[np.uint64], file: NDArray[np.uint64]) -> batch.Pairs:
        return BatchSearch(queries, longest_leading(self._options.hamming, TABLES)).scan([file], CORES)


def _distances(
    fingerprints: NDArray[np.uint64], pairs: NDArray[np.uint64], counts: NDArray[np.uint32]
) -> NDArray[np.float32]:
    distances = np.empty(pairs.size, np.float32)
    for start in range(0, pairs.size, _BLOCK):
        some = pairs[start : start + _BLOCK]
        a, b = some >> np.uint64(32), some & np.uint64(0xFFFFFFFF)
        distances[start : start + _BLOCK] = np.bitwise_count(fingerprints[a] ^ fingerprints[b])
    return distances


class PsmSource(HammingSource):
    """Most pairs within k bits, found with one table (Sood & Loguinov 2011 §6.3).

    The corpus has no simhash weights, so all bits count as equally volatile, and the search flips at most one of the 16
    leading bits. It finds pairs that differ in at most one of these bits: all pairs at distance 1, 94% at distance 2
    and 85% at distance 3.
    """

    name = "psm"

    def _search(self, queries: NDArray[np.uint64], file: NDArray[np.uint64]) -> batch.Pairs:
        psm = Psm(simulated_model(), HEADER, attempts=HEADER, k=self._options.hamming, cap=max(1, file.size))
        return scan_psm(psm, queries, np.zeros((queries.size, BITS), np.uint8), [file])


class _FingerprintFile:
    """Rows grouped by fingerprint."""

    def __init__(self, rows: NDArray[np.int64], fingerprints: NDArray[np.uint64], row_bits: int, common: int) -> None:
        order = np.argsort(fingerprints, kind="stable")
        distinct, starts, counts = np.unique(fingerprints[order], return_index=True, return_counts=True)
        few = counts <= common
        self._rows, self._row_bits = rows[order], np.uint64(row_bits)
        self.distinct, self._starts, self._counts = distinct[few], starts[few], counts[few]
        self.common = IgnoredKeys(int((~few).sum()), int(counts[~few].sum()))

    def fingerprints_from(self, first_new: int) -> NDArray[np.uint64]:
        """Return the fingerprints of all rows with a number of at least `first_new`."""
        last = self._rows[self._starts + self._counts - 1]
        new: NDArray[np.uint64] = self.distinct[last >= first_new]
        return new

    def row_pairs(
        self, near: batch.Pairs, queries: NDArray[np.uint64], first_new: int, most: int
    ) -> Iterator[NDArray[np.uint64]]:
        """Yield the pairs of rows, a << row_bits | b with b >= first_new, for pairs of near fingerprints.

        Yields each pair of rows once, and at most `most` pairs at a time.
        """
        # A pair of two queries was found twice: keep it once.
        once = (near.query <= near.fingerprint) | ~np.isin(near.fingerprint, queries)
        one = np.searchsorted(self.distinct, near.query[once])
        other = np.searchsorted(self.distinct, near.fingerprint[once])
        ends = np.cumsum(self._counts[one] * self._counts[other])
        for first in range(0, int(ends[-1]) if ends.size else 0, most):
            numbers = np.arange(first, min(first + most, int(ends[-1])))
            places = np.searchsorted(ends, numbers, "right")
            yield self._pairs_at(one[places], other[places], ends[places] - numbers - 1, first_new)

    def _pairs_at(
        self, one: NDArray[np.int64], other: NDArray[np.int64], number: NDArray[np.int64], first_new: int
    ) -> NDArray[np.uint64]:
        """Return pairs of rows by their numbers among all pairs of rows of two fingerprints."""
        x = self._rows[self._starts[one] + number // self._counts[other]]
        y = self._rows[self._starts[other] + number % self._counts[other]]
        wanted = (np.maximum(x, y) >= first_new) & ((one != other) | (x < y))
        low, high = np.minimum(x, y)[wanted].astype(np.uint64), np.maximum(x, y)[wanted].astype(np.uint64)
        pairs: NDArray[np.uint64] = low << self._row_bits | high
        return pairs
