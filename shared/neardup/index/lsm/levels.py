"""Runs in the order of their age, merged so that there are few of them and no batch waits for a merge.

Two neighbours are merged when the newer is no longer much smaller: there are about log(entries) / log(ratio) runs. A
merge goes forward a little with every batch. Runs of different epochs are never merged, so old ones are dropped whole.
"""

from collections.abc import Callable, Iterable
from typing import Final, Generic, Protocol, TypeVar

from neardup.index.lsm.array_pool import ArrayPool
from neardup.index.lsm.counts import TableCounts

EPOCHS: Final = 8
"""A time to live is counted in eighths of itself: entries live 8 to 9 of them after they were last inserted."""
RATIO: Final = 4
"""Two neighbouring runs are merged when the older is at most this many times as large. With 8 there is a run less to
look into, and half as much again to merge: growing to 10M keys takes longer."""
_GIVEN_BACK: Final = 64
"""Bytes of spare memory for each inserted entry. With a quarter of it, ten slices of 10M take a third more memory."""


class Aged(Protocol):
    """What the levels ask of a run."""

    epoch: int

    @property
    def size(self) -> int:
        """How many entries."""


_Run = TypeVar("_Run", bound=Aged)


class Merging(Protocol[_Run]):
    """A merge in progress; the two runs stay in use until it is done."""

    older: _Run
    newer: _Run

    @property
    def nbytes(self) -> int:
        """Bytes of memory beside the two runs: as many as the new run will have, written to or not."""

    def advance(self, inserted: int) -> _Run | None:
        """Do the share of work that `inserted` new entries call for; the run when it is ready."""


def epoch_of(now: float, ttl: float) -> int:
    """The number of the epoch; always 0 when entries live for ever."""
    return int(now // (ttl / EPOCHS)) if ttl else 0


class Levels(Generic[_Run]):
    """`merge` begins a merge of an older and a newer run, in memory that it takes from the spares it is given.

    Merges and expired entries are added to `counts`.
    """

    def __init__(
        self, merge: Callable[[_Run, _Run, ArrayPool], Merging[_Run]], ratio: int, counts: TableCounts
    ) -> None:
        self.runs: list[_Run] = []
        self._merge, self._ratio, self._counts = merge, ratio, counts
        self._merges: list[Merging[_Run]] = []
        self._spares = ArrayPool()

    @property
    def merging_nbytes(self) -> int:
        """Bytes of memory that merges in progress hold beside the runs, or left to the next ones."""
        return sum(merge.nbytes for merge in self._merges) + self._spares.nbytes

    def add(self, run: _Run) -> None:
        """The newest run."""
        self.runs.append(run)
        self._start_merges()

    def advance(self, inserted: int) -> None:
        """Let the merges go as far as that many new entries pay for."""
        self._spares.give_back(_GIVEN_BACK * inserted)
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
        """Drop the runs whose every entry is too old when that epoch begins."""
        old = [run for run in self.runs if run.epoch + 1 + EPOCHS <= epoch]
        if old:
            self._merges = [merge for merge in self._merges if merge.older not in old]
            self.runs = [run for run in self.runs if run not in old]
            self._counts.expired += sum(run.size for run in old)

    def restore(self, runs: Iterable[_Run]) -> None:
        """Take over the runs of a snapshot, oldest first."""
        self.runs, self._merges = list(runs), []
        self._start_merges()

    def _start_merges(self) -> None:
        busy = {id(run) for merge in self._merges for run in (merge.older, merge.newer)}
        at = len(self.runs) - 1
        while at > 0:
            older, newer = self.runs[at - 1], self.runs[at]
            fits = older.epoch == newer.epoch and older.size <= self._ratio * newer.size
            if fits and id(older) not in busy and id(newer) not in busy:
                self._merges.append(self._merge(older, newer, self._spares))
                at -= 1
            at -= 1

    def _replace(self, merge: Merging[_Run], run: _Run) -> None:
        at = next(number for number, each in enumerate(self.runs) if each is merge.older)
        self.runs[at : at + 2] = [run]
        self._counts.merges += 1
