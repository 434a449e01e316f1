"""The runs of a log-structured merge tree, in order of age, and their incremental compaction.

Two neighbouring runs are merged once the newer run is not much smaller than the older run, so there are about
log(entries) / log(ratio) runs. Each batch advances the merges in progress a little, and no batch waits for a whole
merge. Runs of different epochs are never merged, so expired runs are dropped as a whole.
"""

from collections.abc import Callable, Iterable
from typing import Final, Generic, Protocol, TypeVar

from neardup.index.lsm.array_pool import ArrayPool
from neardup.index.lsm.counts import TableCounts

EPOCHS: Final = 8
"""Epochs per time to live. An entry expires 8 to 9 epochs after it was last inserted."""
RATIO: Final = 4
"""Two neighbouring runs are merged when the older run is at most this many times as large. With 8, a probe reads one
run less, but merges copy 1.5 times as many entries, and growing to 10M keys takes longer."""
_RELEASED: Final = 64
"""Bytes of idle memory returned to the OS per inserted entry. With 16, ten slices of 10M take a third more memory."""


class Aged(Protocol):
    """Interface of a run in the levels."""

    epoch: int

    @property
    def size(self) -> int:
        """Number of entries."""


_Run = TypeVar("_Run", bound=Aged)


class Merging(Protocol[_Run]):
    """Interface of a merge in progress. Its two runs stay in use until it is finished."""

    older: _Run
    newer: _Run

    @property
    def nbytes(self) -> int:
        """Bytes of memory besides the two runs, including the part of the new run that is not written yet."""

    def advance(self, inserted: int) -> _Run | None:
        """Do the work that is due for `inserted` new entries. Return the new run once it is finished."""


def epoch_of(now: float, ttl: float) -> int:
    """Return the number of the epoch at a time; 0 if entries never expire."""
    return int(now // (ttl / EPOCHS)) if ttl else 0


class Levels(Generic[_Run]):
    """The runs of a table and their merges.

    `merge` starts a merge of an older and a newer run, with memory from the given pool. Finished merges and expired
    entries are added to `counts`.
    """

    def __init__(
        self, merge: Callable[[_Run, _Run, ArrayPool], Merging[_Run]], ratio: int, counts: TableCounts
    ) -> None:
        self.runs: list[_Run] = []
        self._merge, self._ratio, self._counts = merge, ratio, counts
        self._merges: list[Merging[_Run]] = []
        self._pool = ArrayPool()

    @property
    def merging_nbytes(self) -> int:
        """Bytes of memory that merges in progress hold besides the runs, and idle memory of earlier ones."""
        return sum(merge.nbytes for merge in self._merges) + self._pool.nbytes

    def add(self, run: _Run) -> None:
        """Append a run, which is now the newest."""
        self.runs.append(run)
        self._start_merges()

    def advance(self, inserted: int) -> None:
        """Do the merge work that is due for `inserted` new entries."""
        self._pool.release(_RELEASED * inserted)
        finished = False
        for merge in list(self._merges):
            run = merge.advance(inserted)
            if run is not None:
                self._replace(merge, run)
                self._merges.remove(merge)
                finished = True
        if finished:
            self._start_merges()

    def expire(self, epoch: int) -> None:
        """Drop the runs of which every entry is expired when `epoch` begins."""
        old = [run for run in self.runs if run.epoch + 1 + EPOCHS <= epoch]
        if old:
            self._merges = [merge for merge in self._merges if merge.older not in old]
            self.runs = [run for run in self.runs if run not in old]
            self._counts.expired += sum(run.size for run in old)

    def restore(self, runs: Iterable[_Run]) -> None:
        """Replace the runs by those of a snapshot, oldest first."""
        self.runs, self._merges = list(runs), []
        self._start_merges()

    def _start_merges(self) -> None:
        busy = {id(run) for merge in self._merges for run in (merge.older, merge.newer)}
        at = len(self.runs) - 1
        while at > 0:
            older, newer = self.runs[at - 1], self.runs[at]
            fits = older.epoch == newer.epoch and older.size <= self._ratio * newer.size
            if fits and id(older) not in busy and id(newer) not in busy:
                self._merges.append(self._merge(older, newer, self._pool))
                at -= 1
            at -= 1

    def _replace(self, merge: Merging[_Run], run: _Run) -> None:
        at = next(number for number, each in enumerate(self.runs) if each is merge.older)
        self.runs[at : at + 2] = [run]
        self._counts.merges += 1
