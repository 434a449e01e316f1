"""Pairs of rows counted in bounded memory by divide, compute, merge (Broder 1997, "Algorithms").

Pairs are collected in a buffer. When it is full, its pairs are sorted and counted, which makes a run. All runs but the
last are on disk. At the end the runs are merged and their counts added, one range of pairs at a time.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from neardup.kernels.common.radix import sort_words
from neardup.kernels.offline.postings import count_equal, merge_counted
from neardup.offline.pairs.pair_files import PairFiles
from neardup.offline.pairs.postings import merge_pairwise
from neardup.util.parallel import CORES, in_order

_BYTES_A_PAIR: Final = 32
"""Memory per pair that sorting or merging needs."""
_SAMPLED: Final = 64
"""Number of sampled pairs per range, over all runs, from which the bounds of the ranges are chosen."""

Score = Callable[[NDArray[np.uint64], NDArray[np.uint32]], NDArray[np.float32]]
"""(pairs as a << 32 | b, count of each pair) -> score of each pair, negative for rejected pairs."""


class CountedPairs(NamedTuple):
    """Sorted pairs as a << row_bits | b, and the count of each pair."""

    pairs: NDArray[np.uint64]
    counts: NDArray[np.uint32]


class CountedRun(Protocol):
    """Counted pairs in memory or on disk."""

    size: int

    def sample(self, step: int) -> NDArray[np.uint64]:
        """Return every `step`-th pair."""

    def read_range(self, first: int, last: int | None) -> CountedPairs:
        """Return the pairs from `first` up to but not including `last`."""


class RunBuffer:
    """A buffer for pairs of rows below 2^row_bits, which writes runs to a directory of its own.

    A caller that writes to `pairs` directly sets `filled`, and calls `cut` when the buffer is full. The buffer takes
    `memory_bytes`, or the memory for `least` pairs if that is more.
    """

    def __init__(self, memory_bytes: int, least: int, row_bits: int, directory: Path) -> None:
        self.pairs = np.empty(max(memory_bytes // _BYTES_A_PAIR, least), np.uint64)
        self.filled = 0
        self.runs: list[CountedRun] = []
        self._spare = np.empty_like(self.pairs)
        self._row_bits, self._directory = row_bits, directory

    def add(self, pairs: NDArray[np.uint64]) -> None:
        """Append pairs and cut runs whenever the buffer is full."""
        while pairs.size:
            if self.filled == self.pairs.size:
                self.cut()
            some = pairs[: self.pairs.size - self.filled]
            self.pairs[self.filled : self.filled + some.size] = some
            self.filled += some.size
            pairs = pairs[some.size :]

    def cut(self) -> None:
        """Write the buffered pairs to disk as a run."""
        self._directory.mkdir(parents=True, exist_ok=True)
        self.runs.append(_DiskRun(self._directory / str(len(self.runs)), self._sorted_counts()))
        self.filled = 0

    def finish(self) -> list[CountedRun]:
        """Return all runs, the last one in memory. The buffer must not be used afterwards."""
        if self.filled:
            self.runs.append(_MemoryRun(*self._sorted_counts()))
            self.pairs = self._spare = np.empty(0, np.uint64)
        return self.runs

    def _sorted_counts(self) -> CountedPairs:
        pairs, spare = self.pairs[: self.filled], self._spare[: self.filled]
        sort_words(pairs, spare, 0, 2 * self._row_bits)
        counts = spare.view(np.uint32)[: pairs.size]
        kept = count_equal(pairs, counts)
        return CountedPairs(pairs[:kept], counts[:kept])


class _MemoryRun:
    """A run in memory."""

    def __init__(self, pairs: NDArray[np.uint64], counts: NDArray[np.uint32]) -> None:
        self._run = CountedPairs(pairs.copy(), counts.copy())
        self.size = pairs.size

    def sample(self, step: int) -> NDArray[np.uint64]:
        return self._run.pairs[::step]

    def read_range(self, first: int, last: int | None) -> CountedPairs:
        places = _range(self._run.pairs, first, last)
        return CountedPairs(self._run.pairs[places], self._run.counts[places])


class _DiskRun:
    """A run on disk, mapped for each access because there may be more runs than file descriptors."""

    def __init__(self, path: Path, run: CountedPairs) -> None:
        self._pairs, self._counts = path.with_suffix(".pairs"), path.with_suffix(".counts")
        run.pairs.tofile(self._pairs)
        run.counts.tofile(self._counts)
        self.size = run.pairs.size

    def sample(self, step: int) -> NDArray[np.uint64]:
        return np.array(np.memmap(self._pairs, np.uint64, "r")[::step])

    def read_range(self, first: int, last: int | None) -> CountedPairs:
        pairs = np.memmap(self._pairs, np.uint64, "r")
        places = _range(pairs, first, last)
        return CountedPairs(np.array(pairs[places]), np.array(np.memmap(self._counts, np.uint32, "r")[places]))


def merge_runs(
    runs: Sequence[CountedRun],
    row_bits: int,
    score: Score,
    memory_bytes: int,
    pool: ThreadPoolExecutor,
    into: PairFiles,
) -> None:
    """Write the pairs of all runs that the score accepts to `into`, in order and each once."""
    cuts = _cuts(runs, memory_bytes)
    right = np.uint64(row_bits)

    def wanted(number: int) -> tuple[NDArray[np.uint64], NDArray[np.float32]]:
        last = cuts[number + 1] if number + 1 < len(cuts) else None
        # The parts are not assigned to a name, so that each is freed once it is merged.
        pairs, counts = merge_pairwise(
            [run.read_range(cuts[number], last) for run in runs],
            lambda one, other: CountedPairs(*merge_counted(*one, *other)),
        )
        pairs = (pairs >> right << np.uint64(32)) + (pairs & np.uint64((1 << row_bits) - 1))
        scores = score(pairs, counts)
        good = scores >= 0
        return (pairs, scores) if good.all() else (pairs[good], scores[good])

    for found in in_order(pool, wanted, range(len(cuts)), ahead=CORES):
        into.add(*found)


def _cuts(runs: Sequence[CountedRun], memory_bytes: int) -> list[int]:
    """Return the starts of the ranges to merge: at least one range per core, more if memory requires it."""
    total = sum(run.size for run in runs)
    if not total:
        return []
    pieces = max(CORES, total * _BYTES_A_PAIR * CORES // memory_bytes + 1)
    sampled = np.sort(np.concatenate([run.sample(max(1, total // (_SAMPLED * pieces))) for run in runs]))
    inner = sampled[np.linspace(0, sampled.size, pieces, endpoint=False).astype(np.int64)[1:]]
    return [0, *np.unique(inner[inner > 0]).tolist()]


def _range(pairs: NDArray[np.uint64], first: int, last: int | None) -> slice:
    start = int(np.searchsorted(pairs, np.uint64(first)))
    return slice(start, pairs.size if last is None else int(np.searchsorted(pairs, np.uint64(last))))
