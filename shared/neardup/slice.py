"""A slice: what one shard partition holds of one table.

New keys go to an unsorted tail, which is in the order of the log: a query sees the part of it that came before. A full
tail becomes a sorted run, and so does, at once, a batch that would fill it. `levels` merges the runs.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from neardup.codecs import Codec, make_builder
from neardup.counts import TableCounts
from neardup.kernels.scanning import pairs_of_batch, scan_tail
from neardup.levels import RATIO, Levels, epoch_of
from neardup.lookup import DEFAULT_CAP, Found, Lookup, Matches
from neardup.merge import Merge
from neardup.runs import Builder, Run
from neardup.table import Table

TAIL: Final = 1024
BULK: Final = 8192
"""Most keys of a batch that are taken at once."""


@dataclass(frozen=True, slots=True)
class SliceSettings:
    """How a slice works. `ttl` is in the unit of the clock that `probe_and_insert` is given; 0 keeps all for ever."""

    codec: Codec = Codec.PLAIN
    cap: int = DEFAULT_CAP
    ttl: float = 0.0
    tail: int = TAIL
    ratio: int = RATIO
    compress_from: int = 1 << 16


class Slice:
    """Keys of one table that share their first `skip` bits. Not thread-safe; the kernels release the GIL.

    Keys are permuted fingerprints; `Table` makes and undoes them. A key is its own name: inserting it again changes
    nothing, except that with a time to live it is young again.
    """

    def __init__(self, table: Table, *, skip: int = 0, settings: SliceSettings | None = None) -> None:
        self.table, self.skip = table, skip
        self.settings = settings or SliceSettings()
        self.counts = TableCounts()
        self.epoch = 0
        self._levels: Levels[Run] = Levels(self._merge, self.settings.ratio, self.counts)
        self._tail: NDArray[np.uint64] = np.empty(self.settings.tail, np.uint64)
        self._tail_count = 0
        self._found = Found()

    def __len__(self) -> int:
        """Keys held, counting one that was inserted again in a later epoch, or twice in the tail, as often."""
        return sum(run.size for run in self.runs) + self._tail_count

    @property
    def runs(self) -> list[Run]:
        """Oldest first."""
        return self._levels.runs

    @property
    def nbytes(self) -> int:
        """Bytes of the runs, without merges in progress."""
        return sum(run.nbytes for run in self.runs) + self._tail.nbytes

    @property
    def tail(self) -> NDArray[np.uint64]:
        """The keys that are not in a run yet, in the order they came."""
        return self._tail[: self._tail_count]

    def probe(self, keys: NDArray[np.uint64], limits: NDArray[np.uint64] | int) -> Matches:
        """Everything within the limit of each key that shares the table's leading bits, itself included."""
        lookup = self._lookup(keys, limits)
        self._found.clear()
        capped = self.collect(lookup, self._found)
        return self._matches(lookup, capped)

    def collect(self, lookup: Lookup, found: Found) -> int:
        """Add what the lookups find to `found`, unordered; return how many were capped. For other searches."""
        capped = sum(run.probe(lookup, found) for run in self.runs)
        self._scan(lookup, found, step=0)
        return capped

    def probe_and_insert(self, keys: NDArray[np.uint64], limits: NDArray[np.uint64] | int, now: float = 0.0) -> Matches:
        """The same, in order and in one step: key i also meets keys 0 to i-1, and all are remembered.

        `now` never goes back: an earlier one counts as the latest seen.
        """
        self._enter(now)
        limits = self._limits(keys, limits)
        pieces, start = [], 0
        while start < keys.size:
            bulk = keys.size - start >= self.settings.tail
            stop = min(keys.size, start + (BULK if bulk else self.settings.tail - self._tail_count))
            step = self._bulk_step if bulk else self._tail_step
            pieces.append((start, step(keys[start:stop], limits[start:stop])))
            self._levels.advance(stop - start)
            start = stop
        return _joined(pieces)

    def insert(self, keys: NDArray[np.uint64], now: float = 0.0) -> None:
        """Remember without asking. For filling a slice; keys already there are dropped when runs are merged."""
        self._enter(now)
        self._flush()
        if keys.size:
            self._add_run(_distinct(keys))
        self.counts.inserted += keys.size

    def forget(self, key: int) -> bool:
        """Remove a key; True when it was there. Rewrites the runs that hold it: for operators, not for the hot path."""
        word = np.uint64(key)
        kept = self.tail[self.tail != word]
        was_there = int(kept.size) < self._tail_count
        self._tail[: kept.size] = kept
        self._tail_count = kept.size
        was_there |= self._levels.rewrite(lambda run: self._without(run, word))
        self.counts.forgotten += was_there
        return was_there

    def settle(self) -> None:
        """Finish: tail into a run, all runs of an epoch into one. Takes as long as it takes; for loading and tests."""
        self._flush()
        self._levels.settle()

    def restore(self, runs: Iterable[Run], tail: NDArray[np.uint64], epoch: int) -> None:
        """Take over the state that a snapshot kept, oldest run first."""
        self.epoch = epoch
        self._tail = np.empty(max(self.settings.tail, tail.size), np.uint64)
        self._tail[: tail.size] = tail
        self._tail_count = tail.size
        self._levels.restore(runs)

    def _tail_step(self, keys: NDArray[np.uint64], limits: NDArray[np.uint64]) -> Matches:
        lookup = self._lookup(keys, limits)
        found = self._found
        found.clear()
        known, capped = self._probe_runs(lookup, found)
        self._tail[self._tail_count : self._tail_count + keys.size] = keys
        self._scan(lookup, found, step=1)
        matches = self._matches(lookup, capped)
        if known.any():
            fresh = keys[~known]
            self._tail[self._tail_count : self._tail_count + fresh.size] = fresh
            self._tail_count += fresh.size
        else:
            self._tail_count += keys.size
        if self._tail_count == self.settings.tail:
            self._flush()
        return matches

    def _bulk_step(self, keys: NDArray[np.uint64], limits: NDArray[np.uint64]) -> Matches:
        self._flush()
        lookup = self._lookup(keys, limits)
        found = self._found
        found.clear()
        known, capped = self._probe_runs(lookup, found)
        order = np.argsort(keys)
        ordered = keys[order]

        def kernel(start: int, into: Found) -> tuple[int, int]:
            return pairs_of_batch(
                ordered, order, limits, lookup.mask, start, into.query, into.key, into.count
            )  # fmt: skip

        found.collect(keys.size, keys.size, kernel)
        matches = self._matches(lookup, capped)
        fresh = ordered if not known.any() else ordered[~known[order]]
        if fresh.size:
            self._add_run(_without_repeats(fresh))
        return matches

    def _probe_runs(self, lookup: Lookup, found: Found) -> tuple[NDArray[np.bool_], int]:
        """Collect from all runs; which keys are already there (in this epoch), and how many lookups were capped."""
        capped = 0
        known = np.zeros(lookup.keys.size, bool)
        for run in self.runs:
            before = found.count
            capped += run.probe(lookup, found)
            if found.count > before and run.epoch == self.epoch:
                # Distance 0 is never capped away, so this is an exact membership test.
                number = found.query[before : found.count]
                known[number[found.key[before : found.count] == lookup.keys[number]]] = True
        repeated = int(np.count_nonzero(known))
        self.counts.repeated += repeated
        self.counts.inserted += known.size - repeated
        return known, capped

    def _scan(self, lookup: Lookup, found: Found, step: int) -> None:
        visible = self._tail_count

        def kernel(start: int, into: Found) -> tuple[int, int]:
            return scan_tail(
                self._tail, visible, step, lookup.keys, lookup.limits, lookup.mask, start,
                into.query, into.key, into.count,
            )  # fmt: skip

        if visible or step:
            found.collect(lookup.keys.size, self._tail.size, kernel)

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
        """Close the epoch when its time is over, and drop the runs whose every key is too old."""
        epoch = epoch_of(now, self.settings.ttl)
        if epoch > self.epoch:
            self._flush()
            self.epoch = epoch
            self._levels.expire(epoch)

    def _flush(self) -> None:
        if self._tail_count:
            keys = _distinct(self.tail)
            self._tail_count = 0
            self._add_run(keys)

    def _add_run(self, keys: NDArray[np.uint64]) -> None:
        self._levels.add(self._built(keys, self.epoch))

    def _built(self, keys: NDArray[np.uint64], epoch: int) -> Run:
        builder = self._builder(keys, epoch)
        while not builder.step(1 << 62):
            pass
        return builder.run()

    def _builder(self, keys: NDArray[np.uint64], epoch: int) -> Builder:
        codec = self.settings.codec if keys.size >= self.settings.compress_from else Codec.PLAIN
        return make_builder(codec, keys, skip=self.skip, leading=self.table.leading, epoch=epoch)

    def _merge(self, older: Run, newer: Run) -> Merge:
        return Merge(older, newer, self._builder)

    def _without(self, run: Run, key: np.uint64) -> Run | None:
        """The run without that key; None when it does not have it."""
        keys = run.read(0, run.size)
        at = int(np.searchsorted(keys, key))
        if at == keys.size or keys[at] != key:
            return None
        return self._built(np.delete(keys, at), run.epoch)


def _distinct(keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """In rising order, each once. (np.unique hashes first, which is slower on a tail.)"""
    return _without_repeats(np.sort(keys))


def _without_repeats(ordered: NDArray[np.uint64]) -> NDArray[np.uint64]:
    new = np.empty(ordered.size, bool)
    new[:1] = True
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
