"""Batch search: a batch of queries against a file of fingerprints, read once from end to end.

Exact (Manku 2007 §3.3): tables are built on the queries, and each fingerprint of the file is looked up in them. Most
are turned away by one bit of a bitmap, which a block of the file passes in the order of that bit's place.
Probabilistic (Sood & Loguinov 2011 §6.3): a chunk of the file becomes a table, and the queries' flips are looked up.
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
"""Fingerprints that pass all tables together: enough that fetching a table's bitmap anew for each block is little."""
SPACING: Final = 5
"""The bitmaps have 2^5 bits a query: 4 MB a table for a million, one of 32 passes."""
ARRANGED_BITS: Final = 10
"""A block is arranged by this many bits: as many stretches as can be written to side by side."""
NEAR_BYTES: Final = 1 << 18
"""Bitmaps up to this size are near enough for a block in any order."""


_Found = list[tuple[NDArray[np.uint64], NDArray[np.uint64]]]
"""(queries, fingerprints) from one table after the other."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """Queries and fingerprints of the file within k bits of each other; each pair once, in order."""

    query: NDArray[np.uint64]
    fingerprint: NDArray[np.uint64]

    def __len__(self) -> int:
        return int(self.query.size)


class BatchSearch:
    """The queries' tables. Safe to use from many threads: nothing changes after construction."""

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
            # Tables with the same first block follow each other.
            if table.first_bit != arranged_by:
                arranged_by = table.first_bit
                group_by_bits(block, arranged_by, ARRANGED_BITS, arranged)
            pairs.append(table.find(arranged, self._k, passed, found))
        return [pair for pair in pairs if pair[0].size]


def most_near(k: int, size: int) -> int:
    """More different fingerprints than this cannot be within k bits of one: a cap that never cuts anything off."""
    return max(1, min(size, sum(comb(BITS, i) for i in range(k + 1))))


def _bits(sources: Iterable[int]) -> np.uint64:
    return np.uint64(sum(1 << (BITS - 1 - source) for source in sources))


class _QueryTable:
    def __init__(self, table: Table, queries: NDArray[np.uint64], earlier: list[np.uint64]) -> None:
        self._table, self._earlier = table, earlier
        builder = PlainBuilder(np.sort(table.keys_of(queries)), skip=0, leading=table.leading, epoch=0, spacing=SPACING)
        builder.step(queries.size)
        self._run: PlainRun = builder.run()
        # Only the leading bits are needed to ask the bitmap: the moves of the others are left out.
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
        # Most pairs share the leading bits of several tables; the first of those reports them.
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
