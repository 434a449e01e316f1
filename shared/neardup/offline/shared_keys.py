"""Which rows share how many keys: divide, compute, merge (Broder 1997, "Algorithms").

Each key gives its pairs of rows. Pairs are collected until memory is full, sorted and counted: a run. Runs beyond what
fits are kept on disk, and in the end all are merged, a range of pairs at a time, adding counts.
"""

import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from neardup.kernels.postings import PARTITIONS, count_equal, expand, merge_counted
from neardup.kernels.radix import sort_words
from neardup.offline.pairs import Counted, Pairs
from neardup.offline.postings import CORES, Postings, merged

Score = Callable[[NDArray[np.uint64], NDArray[np.uint32]], NDArray[np.float32]]
"""(pairs as a << 32 | b, keys that each shares) -> a score each, below 0 for those that are not wanted."""


class Sharing(NamedTuple):
    """A sorted run of pairs, a << row_bits | b, and how many keys each shares."""

    pairs: NDArray[np.uint64]
    counts: NDArray[np.uint32]

    def between(self, first: int, last: int | None) -> "Sharing":
        """Pairs from `first` to before `last`."""
        start = int(np.searchsorted(self.pairs, np.uint64(first)))
        end = self.pairs.size if last is None else int(np.searchsorted(self.pairs, np.uint64(last)))
        return Sharing(self.pairs[start:end], self.counts[start:end])


def pairs_sharing(
    postings: Postings,
    reach: NDArray[np.uint8],
    first_new: int,
    *,
    common: int,
    memory_bytes: int,
    directory: Path,
    score: Score,
    progress: Callable[[int, int], None],
) -> tuple[Pairs, Counted]:
    """The pairs of rows that share a key, one of them `first_new` or later, and that the score wants.

    A row takes part in keys that are at most its reach in rarity, 0 in none (`kernels.postings.rarity`); keys of more
    than `common` rows with a reach are ignored. What is wanted must fit into memory; the rest is bounded by
    `memory_bytes`, and by `common` words for each core.
    """
    row_bits = reach.size.bit_length()
    spilled = directory / "spilled"
    shutil.rmtree(spilled, ignore_errors=True)
    collecting = [
        _Collecting(postings, reach, first_new, common, row_bits, memory_bytes // (32 * CORES), spilled / str(number))
        for number in range(CORES)
    ]
    with ThreadPoolExecutor(CORES) as pool:
        tasks = [pool.submit(each.collect, range(number, PARTITIONS, CORES)) for number, each in enumerate(collecting)]
        runs = []
        for done, task in enumerate(tasks):
            runs += task.result()
            progress(done + 1, CORES + 1)
        cuts = _cuts(runs, memory_bytes)

        def wanted(number: int) -> tuple[NDArray[np.uint64], NDArray[np.float32]]:
            last = cuts[number + 1] if number + 1 < len(cuts) else None
            parts = [run.between(cuts[number], last) for run in runs]
            pairs, counts = merged(parts, lambda one, other: Sharing(*merge_counted(*one, *other)))
            pairs = pairs >> np.uint64(row_bits) << np.uint64(32) | pairs & np.uint64((1 << row_bits) - 1)
            scores = score(pairs, counts)
            return pairs[scores >= 0], scores[scores >= 0]

        found = list(pool.map(wanted, range(len(cuts)))) if runs else []
    shutil.rmtree(spilled, ignore_errors=True)
    progress(CORES + 1, CORES + 1)
    ignored = np.sum([each.ignored for each in collecting], axis=0)
    pairs = np.concatenate([np.empty(0, np.uint64), *(each for each, _ in found)])
    scores = np.concatenate([np.empty(0, np.float32), *(each for _, each in found)])
    a, b = (pairs >> np.uint64(32)).astype(np.uint32), pairs.astype(np.uint32)
    return Pairs(a, b, scores), Counted(int(ignored[0]), int(ignored[1]))


class _Collecting:
    """A thread's share: its partitions' pairs, in a buffer that is counted whenever it is full."""

    def __init__(
        self,
        postings: Postings,
        reach: NDArray[np.uint8],
        first_new: int,
        common: int,
        row_bits: int,
        most: int,
        spilled: Path,
    ) -> None:
        self._postings, self._reach, self._first_new, self._common = postings, reach, first_new, common
        self._row_bits, self._most, self._spilled = row_bits, max(most, common), spilled
        self.ignored = np.zeros(2, np.int64)

    def collect(self, partitions: range) -> list[Sharing]:
        buffer = np.empty(self._most, np.uint64)
        spare = np.empty_like(buffer)
        runs: list[Sharing] = []
        filled = 0
        for number in partitions:
            words, at, done = self._postings.partition(number), 0, 0
            while at < words.size:
                at, done, filled = expand(
                    words,
                    at,
                    done,
                    self._reach,
                    self._first_new,
                    self._common,
                    self._row_bits,
                    buffer,
                    filled,
                    self.ignored,
                )
                if at < words.size:
                    runs.append(self._spill(self._counted(buffer[:filled], spare[:filled]), len(runs)))
                    filled = 0
        if filled:
            runs.append(self._counted(buffer[:filled], spare[:filled]))
        return runs

    def _spill(self, run: Sharing, number: int) -> Sharing:
        self._spilled.mkdir(parents=True, exist_ok=True)
        pairs, counts = self._spilled / f"{number}.pairs", self._spilled / f"{number}.counts"
        run.pairs.tofile(pairs)
        run.counts.tofile(counts)
        return Sharing(np.memmap(pairs, np.uint64, "r"), np.memmap(counts, np.uint32, "r"))

    def _counted(self, pairs: NDArray[np.uint64], spare: NDArray[np.uint64]) -> Sharing:
        """Sort and count; the buffer can be used again."""
        sort_words(pairs, spare, 0, 2 * self._row_bits)
        counts = spare.view(np.uint32)[: pairs.size]
        kept = count_equal(pairs, counts)
        return Sharing(pairs[:kept].copy(), counts[:kept].copy())


def _cuts(runs: list[Sharing], memory_bytes: int) -> list[int]:
    """Where the ranges begin that are merged at once: one for each core, or as many as memory wants."""
    largest = max(runs, key=lambda run: run.pairs.size, default=None)
    if largest is None:
        return []
    pieces = max(CORES, sum(run.pairs.size for run in runs) * 32 * CORES // memory_bytes + 1)
    inner = largest.pairs[np.linspace(0, largest.pairs.size, pieces, endpoint=False).astype(np.int64)[1:]]
    return [0, *np.unique(inner).tolist()]
