"""A slice: the part of one table that one shard partition holds.

It is a log-structured merge tree. New keys are inserted into the tail one by one, so each finds the keys before it. A
full tail becomes a sorted run, and `Levels` merges the runs.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from neardup.index.lsm.array_pool import ArrayPool
from neardup.index.lsm.counts import TableCounts
from neardup.index.lsm.levels import RATIO, Levels, epoch_of
from neardup.index.lsm.lookup import DEFAULT_CAP, Found, Lookup, Matches
from neardup.index.plan.table import BITS, Table
from neardup.index.slices.codecs import Codec, make_builder
from neardup.index.slices.merge import Merge
from neardup.index.slices.runs import Builder, SortedRun
from neardup.index.slices.tail import Tail
from neardup.kernels.index.scanning import mark_known

TAIL: Final = 1 << 13


@dataclass(frozen=True, slots=True)
class SliceSettings:
    """Settings of a slice. `ttl` has the unit of `now` in `probe_and_insert`; with 0, keys never expire."""

    codec: Codec = Codec.PLAIN
    cap: int = DEFAULT_CAP
    ttl: float = 0.0
    tail: int = TAIL
    ratio: int = RATIO
    compress_from: int = 1 << 16


class Slice:
    """Keys of one table that share their first `skip` bits. Not thread-safe; the kernels release the GIL.

    Keys are permuted fingerprints (see `Table`). Inserting a key again has no effect except that it restarts the key's
    time to live.
    """

    def __init__(self, table: Table, *, skip: int = 0, settings: SliceSettings | None = None) -> None:
        self.table, self.skip = table, skip
        self.settings = settings or SliceSettings()
        self.counts = TableCounts()
        self.epoch = 0
        self._levels: Levels[SortedRun] = Levels(self._merge, self.settings.ratio, self.counts)
        self._tail = Tail(self.settings.tail, table.mask)
        self._found = Found()

    def __len__(self) -> int:
        """Return the number of keys. A key that was inserted in several epochs counts once per epoch."""
        return sum(run.size for run in self.runs) + len(self._tail)

    @property
    def runs(self) -> list[SortedRun]:
        """Oldest first."""
        return self._levels.runs

    @property
    def nbytes(self) -> int:
        """Bytes of the runs, of the merges in progress, which copy some of the runs, and of the tail."""
        return sum(run.nbytes for run in self.runs) + self._levels.merging_nbytes + self._tail.nbytes

    @property
    def tail(self) -> NDArray[np.uint64]:
        """The keys that are not in a run yet, in order of insertion."""
        return self._tail.keys

    def probe(self, keys: NDArray[np.uint64], limits: NDArray[np.uint64] | int) -> Matches:
        """Return the keys within each query's limit that agree in the table's leading bits, equal keys included."""
        lookup = self._lookup(keys, limits)
        self._found.clear()
        capped = self.collect(lookup, self._found)
        return self._matches(lookup, capped)

    def collect(self, lookup: Lookup, found: Found) -> int:
        """Add the matches of the lookups to `found`, unordered, and return the number of capped lookups.

        The lookups may have more leading bits than the table, not fewer.
        """
        before = found.scanned
        capped = sum(run.probe(lookup, found) for run in self.runs)
        self._tail.probe(lookup, found)
        self.counts.scanned += found.scanned - before
        return capped

    def probe_and_insert(
        self,
        keys: NDArray[np.uint64],
        limits: NDArray[np.uint64] | int,
        now: float = 0.0,
        asks: NDArray[np.bool_] | None = None,
    ) -> Matches:
        """Probe and insert the keys one by one: key i also matches keys 0 to i-1 of the batch.

        Keys with `asks` are probed but not inserted. If `now` is before the latest time given, the latest time counts.
        """
        self._enter(now)
        limits = self._limits(keys, limits)
        pieces, start = [], 0
        while start < keys.size:
            stop = min(keys.size, start + self._tail.free)
            some = None if asks is None else asks[start:stop]
            pieces.append((start, self._step(keys[start:stop], limits[start:stop], some)))
            start = stop
        return _joined(pieces)

    def insert(self, keys: NDArray[np.uint64], now: float = 0.0) -> None:
        """Insert keys without probing."""
        self._enter(now)
        self._flush()
        distinct = _distinct(keys)
        itself = Lookup(distinct, np.zeros(distinct.size, np.uint64), BITS, 1)
        known = np.zeros(distinct.size, bool)
        for run in self.runs:
            if run.epoch == self.epoch:
                self._found.clear()
                run.probe(itself, self._found)
                known[self._found.query[: self._found.count]] = True
        fresh = distinct[~known] if known.any() else distinct
        if fresh.size:
            self._add_run(fresh)
        self.counts.inserted += fresh.size
        self.counts.repeated += keys.size - fresh.size

    def restore(self, runs: Iterable[SortedRun], tail: NDArray[np.uint64], epoch: int) -> None:
        """Replace the contents by those of a snapshot. Runs are given oldest first."""
        self.epoch = epoch
        self._tail.clear()
        runs = list(runs)
        if tail.size < self._tail.free:
            self._tail.load(tail)
        else:
            runs.append(self._built(np.sort(tail), epoch))
        self._levels.restore(runs)

    def _step(self, keys: NDArray[np.uint64], limits: NDArray[np.uint64], asks: NDArray[np.bool_] | None) -> Matches:
        """Probe and insert at most as many keys as the tail has room for."""
        lookup = self._lookup(keys, limits)
        found = self._found
        found.clear()
        # A key that is only probed is treated as one that is there already.
        known = np.zeros(keys.size, bool) if asks is None else asks.copy()
        offered = keys.size - int(np.count_nonzero(known))
        capped = 0
        for run in self.runs:
            before = found.count
            capped += run.probe(lookup, found)
            if run.epoch == self.epoch and found.count > before:
                # Distance 0 is never capped away, so this is an exact membership test.
                mark_known(found.query, found.key, before, found.count, keys, known)
        inserted = self._tail.probe_and_insert(lookup, known, found)
        self.counts.scanned += found.scanned
        self.counts.inserted += inserted
        self.counts.repeated += offered - inserted
        if not self._tail.free:
            self._flush()
        self._levels.advance(keys.size)
        return self._matches(lookup, capped)

    def _matches(self, lookup: Lookup, capped: int) -> Matches:
        matches = self._found.matches(lookup.keys, lookup.cap)
        self.counts.probes += lookup.keys.size
        self.counts.matches += len(matches)
        self.counts.capped += max(capped, matches.capped)
        return matches

    def _lookup(self, keys: NDArray[np.uint64], limits: NDArray[np.uint64] | int) -> Lookup:
        return Lookup(keys, self._limits(keys, limits), self.table.leading, self.settings.cap)

    def _limits(self, keys: NDArray[np.uint64], limits: NDArray[np.uint64] | int) -> NDArray[np.uint64]:
        return np.full(keys.size, limits, np.uint64) if isinstance(limits, int) else limits

    def _enter(self, now: float) -> None:
        """Start a new epoch if `now` is after the end of the current one, and drop the expired runs."""
        epoch = epoch_of(now, self.settings.ttl)
        if epoch > self.epoch:
            self._flush()
            self.epoch = epoch
            self._levels.expire(epoch)

    def _flush(self) -> None:
        if len(self._tail):
            keys = np.sort(self._tail.keys)
            self._tail.clear()
            self._add_run(keys)

    def _add_run(self, keys: NDArray[np.uint64]) -> None:
        self._levels.add(self._built(keys, self.epoch))

    def _built(self, keys: NDArray[np.uint64], epoch: int) -> SortedRun:
        builder = self._builder(keys, epoch)
        while not builder.step(1 << 62):
            pass
        return builder.run()

    def _builder(self, keys: NDArray[np.uint64], epoch: int, pool: ArrayPool | None = None) -> Builder:
        codec = self.settings.codec if keys.size >= self.settings.compress_from else Codec.PLAIN
        return make_builder(codec, keys, skip=self.skip, leading=self.table.leading, epoch=epoch, pool=pool)

    def _merge(self, older: SortedRun, newer: SortedRun, pool: ArrayPool) -> Merge:
        return Merge(older, newer, pool, self._builder)


def _distinct(keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the distinct keys in rising order. (np.unique hashes first, which is slower.)"""
    ordered = np.sort(keys)
    new = np.ones(ordered.size, bool)
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    return ordered if new.all() else ordered[new]


def _joined(pieces: list[tuple[int, Matches]]) -> Matches:
    if len(pieces) == 1:
        return pieces[0][1]
    return Matches(
        np.concatenate([start + piece.query for start, piece in pieces] or [np.empty(0, np.int64)]),
        np.concatenate([piece.key for _, piece in pieces] or [np.empty(0, np.uint64)]),
        np.concatenate([piece.distance for _, piece in pieces] or [np.empty(0, np.uint8)]),
        sum(piece.capped for _, piece in pieces),
    )
