"""Search of a batch of queries in one sequential scan of a fingerprint file.

The exact search (Manku 2007 §3.3) builds tables of the queries and looks up each fingerprint of the file in them. A
bitmap rejects most fingerprints by a single bit. The fingerprints of a block are grouped so that each group reads a
small part of the bitmap.

The probabilistic search (Sood & Loguinov 2011 §6.3) makes a table of each chunk of the file and looks up the flips of
the queries in it.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from math import comb
from typing import Final

import numpy as np
from numpy.typing import NDArray

from neardup.index.lsm.lookup import Found, Lookup
from neardup.index.plan.design import Design
from neardup.index.plan.table import BITS, Table, moves
from neardup.index.psm.search import Psm
from neardup.index.slices.runs import PlainBuilder, PlainRun
from neardup.index.slices.slice import Slice
from neardup.kernels.index.bitmap_filter import filter_by_bitmap, group_by_bits
from neardup.util.scratch import Scratch

BLOCK: Final = 1 << 21
"""Fingerprints per block. So large a block makes it cheap to load each table's bitmap into the cache once per block."""
SPACING: Final = 5
"""A bitmap has 2^5 bits per query, which is 4 MB for a million queries. One fingerprint of 32 passes a bitmap."""
ARRANGED_BITS: Final = 10
"""Number of bits by which a block is grouped. The number of groups is limited by the number of write streams."""
NEAR_BYTES: Final = 1 << 18
"""Bitmaps up to this size fit the cache, so blocks need not be grouped."""


_Found = list[tuple[NDArray[np.uint64], NDArray[np.uint64]]]
"""Pairs of (queries, fingerprints), one per table."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """Distinct pairs of a query and a fingerprint of the file within k bits, sorted by query and fingerprint."""

    query: NDArray[np.uint64]
    fingerprint: NDArray[np.uint64]

    def __len__(self) -> int:
        return int(self.query.size)


class BatchSearch:
    """The exact search, with the tables of its queries. It is immutable, so it may be shared between threads."""

    def __init__(self, queries: NDArray[np.uint64], design: Design) -> None:
        self._k = design.k
        self._scratch = Scratch()
        distinct = np.unique(queries)
        self._distinct = int(distinct.size)
        tables = design.tables()
        leading = [_bits(table.order[: table.leading]) for table in tables]
        self._tables = [_QueryTable(table, distinct, leading[:number]) for number, table in enumerate(tables)]

    def scan(self, chunks: Iterable[NDArray[np.uint64]], threads: int = 1) -> Pairs:
        """Return all pairs within k bits. Blocks are distributed to the threads; the kernels release the GIL."""
        blocks = (chunk[start : start + BLOCK] for chunk in chunks for start in range(0, chunk.size, BLOCK))
        return _together(map(self._scan_block, blocks) if threads == 1 else self._scan_at_once(blocks, threads))

    def _scan_at_once(self, blocks: Iterable[NDArray[np.uint64]], threads: int) -> Iterator[_Found]:
        """Yield the pairs of each block in order. Chunks are read and checked only when a thread needs them."""
        waiting: deque[Future[_Found]] = deque()
        with ThreadPoolExecutor(threads) as pool:
            for block in blocks:
                waiting.append(pool.submit(self._scan_block, block))
                if len(waiting) > 2 * threads:
                    yield waiting.popleft().result()
            for each in waiting:
                yield each.result()

    def _scan_block(self, block: NDArray[np.uint64]) -> _Found:
        block = np.ascontiguousarray(block)
        arranged, passed = (
            self._scratch.room(name, block.size, np.uint64)[: block.size] for name in ("arranged", "passed")
        )
        found = Found(2 * most_near(self._k, self._distinct))
        pairs: _Found = []
        arranged_by = -1
        for table in self._tables:
            if not table.is_wide:
                pairs.append(table.find(block, self._k, passed, found))
                continue
            # Tables with the same first bit are adjacent, so the block is grouped again only when that bit changes.
            if table.first_bit != arranged_by:
                arranged_by = table.first_bit
                group_by_bits(block, arranged_by, ARRANGED_BITS, arranged)
            pairs.append(table.find(arranged, self._k, passed, found))
        return [pair for pair in pairs if pair[0].size]


def most_near(k: int, size: int) -> int:
    """Return the maximum number of fingerprints, out of `size` distinct ones, within k bits of a given fingerprint.

    A search with this cap therefore returns all matches.
    """
    return max(1, min(size, sum(comb(BITS, i) for i in range(k + 1))))


def _bits(sources: Iterable[int]) -> np.uint64:
    return np.uint64(sum(1 << (BITS - 1 - source) for source in sources))


class _QueryTable:
    def __init__(self, table: Table, queries: NDArray[np.uint64], earlier: list[np.uint64]) -> None:
        self._table, self._earlier = table, earlier
        builder = PlainBuilder(np.sort(table.keys_of(queries)), skip=0, leading=table.leading, epoch=0, spacing=SPACING)
        builder.step(queries.size)
        self._run: PlainRun = builder.run()
        # The bitmap needs only the leading bits, so the moves of other bits are left out.
        masks, rotations = moves(table.order)
        masks &= _bits(table.order[: self._run.bitmap_bits])
        self._masks, self._rotations = masks[masks > 0], rotations[masks > 0]
        self.first_bit = table.order[0]
        self.is_wide = self._run.bitmap.nbytes > NEAR_BYTES

    def find(
        self, block: NDArray[np.uint64], k: int, passed: NDArray[np.uint64], found: Found
    ) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        run, table = self._run, self._table
        candidates = block
        if run.bitmap_bits:
            count = filter_by_bitmap(block, self._masks, self._rotations, run.bitmap_bits, run.bitmap, passed)
            candidates = passed[:count]
        limits = np.full(candidates.size, k, np.uint64)
        lookup = Lookup(table.keys_of(candidates), limits, table.leading, most_near(k, run.size))
        found.clear()
        run.probe_unfiltered(lookup, found)
        queries, others = table.fingerprints_of(found.key[: found.count]), candidates[found.query[: found.count]]
        # Most pairs agree in the leading bits of several tables. Only the first of these tables reports them.
        known = np.zeros(queries.size, bool)
        for mask in self._earlier:
            known |= (queries ^ others) & mask == 0
        return queries[~known], others[~known]


def scan_psm(
    psm: Psm,
    queries: NDArray[np.uint64],
    levels: NDArray[np.uint8],
    chunks: Iterable[NDArray[np.uint64]],
    *,
    first: bool = False,
) -> Pairs:
    """Return the pairs that PSM finds in a file. With `first`, a query is dropped after its first match."""
    pieces = []
    for chunk in chunks:
        if not queries.size:
            break
        kept = Slice(Table.plain(psm.header))
        kept.insert(np.ascontiguousarray(chunk))
        matches = (psm.find_first if first else psm.find_all)(kept, queries, levels)
        pieces.append([(queries[matches.query], matches.key)])
        if first:
            waiting = np.ones(queries.size, bool)
            waiting[matches.query] = False
            queries, levels = queries[waiting], levels[waiting]
    return _together(pieces)


def _together(found: Iterable[_Found]) -> Pairs:
    pairs = list(chain.from_iterable(found))
    if not pairs:
        return Pairs(np.empty(0, np.uint64), np.empty(0, np.uint64))
    query = np.concatenate([each for each, _ in pairs])
    fingerprint = np.concatenate([each for _, each in pairs])
    order = np.lexsort((fingerprint, query))
    query, fingerprint = query[order], fingerprint[order]
    new = np.ones(query.size, bool)
    new[1:] = (query[1:] != query[:-1]) | (fingerprint[1:] != fingerprint[:-1])
    return Pairs(query[new], fingerprint[new])
