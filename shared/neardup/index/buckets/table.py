"""Bucket tables: exact key → fingerprints, for the bands of a sketch and Broder's features.

The newest pairs are in a hash table. When it is full they become a sorted run, and runs are merged as those of a slice.
A key with as many fingerprints as the limit is common: it is ignored, as Broder ignores common shingles, and counted.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from neardup.index.buckets.pair_runs import PairMerge, PairRun
from neardup.index.buckets.recent_pairs import RecentPairs
from neardup.index.lsm.counts import TableCounts
from neardup.index.lsm.levels import RATIO, Levels, epoch_of
from neardup.index.lsm.lookup import Found
from neardup.kernels.common.plain import plain
from neardup.kernels.index.bucketing import ASKS, InRuns, PairBatch, mix, unmix
from neardup.kernels.index.ordering import group_by_query

COMMON: Final = 1000
RECENT: Final = 1 << 15


@dataclass(frozen=True, slots=True)
class BucketMatches:
    """Which query met which fingerprint in its bucket: sorted by query, then fingerprint; no pair twice."""

    query: NDArray[np.int64]
    fingerprint: NDArray[np.uint64]


class BucketTable:
    """Not thread-safe; the kernels release the GIL. Inserting a pair again only makes it young again.

    `ttl` is in the unit of the clock that `probe_and_insert` is given, and counted in epochs as in a slice; 0 keeps all
    for ever. `recent` is how many pairs the hash table holds.
    """

    def __init__(self, *, common: int = COMMON, ttl: float = 0.0, recent: int = RECENT, ratio: int = RATIO) -> None:
        self.counts = TableCounts()
        self.epoch = 0
        self._common, self._ttl = common, ttl
        self._recent = RecentPairs(recent)
        self._levels = Levels(PairMerge, ratio, self.counts)
        self._in_runs, self._found = Found(), Found()

    def __len__(self) -> int:
        """Pairs held, counting one that was inserted again in a later epoch as often."""
        return len(self._recent) + sum(run.size for run in self._levels.runs)

    @property
    def nbytes(self) -> int:
        """Bytes of the runs, of the merges in progress, which are a second copy of some of them, and the hash table."""
        return self._recent.nbytes + self._levels.merging_nbytes + sum(run.nbytes for run in self._levels.runs)

    @property
    def run_count(self) -> int:
        """Runs that a probe looks into."""
        return len(self._levels.runs)

    def probe_and_insert(
        self,
        keys: NDArray[np.uint64],
        fingerprints: NDArray[np.uint64],
        now: float = 0.0,
        asks: NDArray[np.bool_] | None = None,
    ) -> BucketMatches:
        """In order: pair i meets the pairs that were there and pairs 0 to i-1 of the batch, then is remembered.

        Those that only ask are not, and no pair meets them.
        A bucket that has reached the limit answers nothing and takes nothing more, until enough of it has expired.
        `now` never goes back: an earlier one counts as the latest seen.
        """
        self._enter(now)
        mixed = np.empty(keys.size, np.uint64)
        mix(keys, mixed)
        self._found.clear()
        start = 0
        while start < keys.size:
            stop = min(keys.size, start + self._recent.free)
            marks = np.zeros(stop - start, np.uint8) if asks is None else asks[start:stop] * np.uint8(ASKS)
            self._step(mixed[start:stop], fingerprints[start:stop], start, marks)
            start = stop
        matches = BucketMatches(
            self._found.query[: self._found.count].copy(), self._found.key[: self._found.count].copy()
        )
        self.counts.probes += keys.size
        self.counts.matches += self._found.count
        # Keys must be equal: what is looked at is a match.
        self.counts.scanned += self._found.count
        return matches

    def pairs(self) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.uint64], int]]:
        """(keys, fingerprints, epoch) of all that is held, oldest first; keys as they were given."""
        recent = (self._recent.keys, self._recent.fingerprints, self.epoch)
        for mixed, fingerprints, epoch in [
            *((run.keys, run.fingerprints, run.epoch) for run in self._levels.runs),
            recent,
        ]:
            keys = np.empty(mixed.size, np.uint64)
            unmix(mixed, keys)
            yield keys, fingerprints, epoch

    def parts(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """The arrays and the rest that a snapshot keeps, as they are now: what comes later does not change them."""
        arrays: dict[str, NDArray[Any]] = {
            "recent/keys": self._recent.keys.copy(), "recent/fingerprints": self._recent.fingerprints.copy(),
        }  # fmt: skip
        for number, run in enumerate(self._levels.runs):
            arrays |= {f"{number}/keys": run.keys, f"{number}/fingerprints": run.fingerprints}
        return arrays, {"epoch": self.epoch, "epochs": [run.epoch for run in self._levels.runs]}

    def restore(self, arrays: Mapping[str, NDArray[Any]], about: Mapping[str, Any]) -> None:
        """Take over what `parts` gave."""
        self.epoch = about["epoch"]
        runs = [
            PairRun.of(arrays[f"{number}/keys"], arrays[f"{number}/fingerprints"], epoch)
            for number, epoch in enumerate(about["epochs"])
        ]
        keys, fingerprints = arrays["recent/keys"], arrays["recent/fingerprints"]
        self._recent.clear()
        if keys.size < self._recent.free:
            self._recent.load(keys, fingerprints)
        else:
            runs.append(PairRun.sorted(keys, fingerprints, self.epoch))
        self._levels.restore(runs)

    def _step(
        self, keys: NDArray[np.uint64], fingerprints: NDArray[np.uint64], start: int, marks: NDArray[np.uint8]
    ) -> None:
        """No more pairs than there is room for; `start` is the number of the first in its batch."""
        only_asked = int(np.count_nonzero(marks))
        in_runs, found = self._in_runs, self._found
        in_runs.clear()
        batch = plain(PairBatch(keys, fingerprints, marks, self._common))
        for run in self._levels.runs:
            run.probe(batch, epoch=self.epoch, found=in_runs)
        grouped = plain(InRuns(*group_by_query(in_runs.query, in_runs.key, in_runs.count, keys.size)))
        before, recent = found.count, len(self._recent)
        ignored = self._recent.probe_and_insert(batch, grouped, one_epoch=not self._ttl, found=found)
        found.query[before : found.count] += start
        inserted = len(self._recent) - recent
        self.counts.inserted += inserted
        self.counts.common += ignored
        # One that only asked may be among the ignored.
        self.counts.repeated += max(0, keys.size - only_asked - ignored - inserted)
        if not self._recent.free:
            self._flush()
        self._levels.advance(keys.size)

    def _enter(self, now: float) -> None:
        """Close the epoch when its time is over, and drop the runs whose every pair is too old."""
        epoch = epoch_of(now, self._ttl)
        if epoch > self.epoch:
            self._flush()
            self.epoch = epoch
            self._levels.expire(epoch)

    def _flush(self) -> None:
        if len(self._recent):
            run = PairRun.sorted(self._recent.keys, self._recent.fingerprints, self.epoch)
            self._recent.clear()
            self._levels.add(run)
