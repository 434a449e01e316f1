"""Bucket tables: exact lookup of fingerprints by key, for the bands of a sketch.

The newest pairs are in a hash table. When the hash table is full, its pairs become a sorted run, and runs are merged as
in a slice. A bucket that has reached the limit of fingerprints is common. Common buckets are ignored, as Broder ignores
common shingles, and counted.
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
from neardup.kernels.index.bucketing import ASKS, PairBatch, mix, unmix
from neardup.kernels.index.ordering import group_by_query

COMMON: Final = 1000
RECENT: Final = 1 << 15


@dataclass(frozen=True, slots=True)
class BucketMatches:
    """Distinct pairs of a query and a fingerprint in its bucket, sorted by query and fingerprint."""

    query: NDArray[np.int64]
    fingerprint: NDArray[np.uint64]


class BucketTable:
    """A table of pairs of a key and a fingerprint. Not thread-safe; the kernels release the GIL.

    Inserting a pair again restarts its time to live. `ttl` has the unit of `now` in `probe_and_insert` and is counted
    in epochs, as in a slice; with 0, pairs never expire. `recent` is the capacity of the hash table in pairs.
    """

    def __init__(self, *, common: int = COMMON, ttl: float = 0.0, recent: int = RECENT, ratio: int = RATIO) -> None:
        self.counts = TableCounts()
        self.epoch = 0
        self._common, self._ttl = common, ttl
        self._recent = RecentPairs(recent)
        self._levels = Levels(PairMerge, ratio, self.counts)
        self._in_runs, self._found = Found(), Found()

    def __len__(self) -> int:
        """Return the number of pairs. A pair that was inserted in several epochs counts once per epoch."""
        return len(self._recent) + sum(run.size for run in self._levels.runs)

    @property
    def nbytes(self) -> int:
        """Bytes of the runs, of the merges in progress, which copy some of the runs, and of the hash table."""
        return self._recent.nbytes + self._levels.merging_nbytes + sum(run.nbytes for run in self._levels.runs)

    @property
    def run_count(self) -> int:
        """Number of runs that a probe reads."""
        return len(self._levels.runs)

    def probe_and_insert(
        self,
        keys: NDArray[np.uint64],
        fingerprints: NDArray[np.uint64],
        now: float = 0.0,
        asks: NDArray[np.bool_] | None = None,
    ) -> BucketMatches:
        """Return the fingerprints in the bucket of each pair, then insert the pair, one by one.

        Pair i also matches pairs 0 to i-1 of the batch. Pairs with `asks` are not inserted. A bucket that has reached
        the limit returns nothing and accepts no more pairs until enough of its pairs have expired. If `now` is before
        the latest time given, the latest time counts.
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
        # Only entries with equal keys are compared, so every comparison is a match.
        self.counts.scanned += self._found.count
        return matches

    def pairs(self) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.uint64], int]]:
        """Yield all pairs as keys, fingerprints and their epoch, oldest first. Keys are those that were inserted."""
        recent = (self._recent.keys, self._recent.fingerprints, self.epoch)
        for mixed, fingerprints, epoch in [
            *((run.keys, run.fingerprints, run.epoch) for run in self._levels.runs),
            recent,
        ]:
            keys = np.empty(mixed.size, np.uint64)
            unmix(mixed, keys)
            yield keys, fingerprints, epoch

    def parts(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return the arrays and the other values that a snapshot contains. Later inserts do not change them."""
        arrays: dict[str, NDArray[Any]] = {
            "recent/keys": self._recent.keys.copy(), "recent/fingerprints": self._recent.fingerprints.copy(),
        }  # fmt: skip
        for number, run in enumerate(self._levels.runs):
            arrays |= {f"{number}/keys": run.keys, f"{number}/fingerprints": run.fingerprints}
        return arrays, {"epoch": self.epoch, "epochs": [run.epoch for run in self._levels.runs]}

    def restore(self, arrays: Mapping[str, NDArray[Any]], about: Mapping[str, Any]) -> None:
        """Replace the contents by those that `parts` returned."""
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
        """Probe and insert at most as many pairs as there is room for; the first is number `start` of its batch."""
        only_asked = int(np.count_nonzero(marks))
        in_runs, found = self._in_runs, self._found
        in_runs.clear()
        batch = plain(PairBatch(keys, fingerprints, marks, self._common))
        for run in self._levels.runs:
            run.probe(batch, epoch=self.epoch, found=in_runs)
        grouped = group_by_query(in_runs.query, in_runs.key, in_runs.count, keys.size)
        before, recent = found.count, len(self._recent)
        ignored = self._recent.probe_and_insert(batch, grouped, one_epoch=not self._ttl, found=found)
        found.query[before : found.count] += start
        inserted = len(self._recent) - recent
        self.counts.inserted += inserted
        self.counts.common += ignored
        # The ignored pairs may include pairs that were only probed, so the difference may be negative.
        self.counts.repeated += max(0, keys.size - only_asked - ignored - inserted)
        if not self._recent.free:
            self._flush()
        self._levels.advance(keys.size)

    def _enter(self, now: float) -> None:
        """Start a new epoch if `now` is after the end of the current one, and drop the expired runs."""
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
