"""The table slice of a shard partition: a permuted table or a bucket table, behind one interface."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from neardup import metrics
from neardup.index.buckets.table import BucketTable
from neardup.index.lsm.counts import TableCounts
from neardup.index.lsm.levels import EPOCHS, epoch_of
from neardup.index.plan.plan import Plan
from neardup.index.plan.table import Table
from neardup.index.psm.search import Psm
from neardup.index.slices.codecs import Codec
from neardup.index.slices.slice import Slice, SliceSettings
from neardup.index.snapshot import Frozen, freeze_buckets, freeze_slice, load_buckets, load_slice
from neardup.index.warm_up import warm_up_buckets, warm_up_slices
from neardup.messages.probes import Probes, concatenated, query_only_of
from neardup.messages.seeds import SeedKeys
from neardup.settings import Settings

_HOUR: Final = 3_600_000
_SEED_KEYS: Final = 32_000
"""Fingerprints per seed, which make at most 512 KB together with the keys of a bucket table."""
# Looked up once, because finding a counter by its labels takes longer than incrementing it.
_EVENTS: Final = {event: metrics.SLICE_EVENTS.labels(event) for event in TableCounts.__slots__}
_GAUGES: Final = (metrics.SLICE_BYTES, metrics.SLICE_RUNS)
Pairs = tuple[NDArray[np.uint64], NDArray[np.uint64]]
"""(query, found): `found[i]` is near `query[i]`."""


class TableStore(ABC):
    """Stores fingerprints and finds those near a query. All times are timestamps of records, in milliseconds."""

    table_name: ClassVar[str]
    """First part of the table's name in the `found_by` of verdicts."""

    def __init__(self, settings: Settings, plan: Plan, partition: int) -> None:
        self._plan = plan
        self._partition = partition
        self._ttl = settings.ttl_hours * _HOUR
        self._reported: dict[str, int] = {}
        self._keys = metrics.SLICE_KEYS.labels(str(partition), self.table_name)
        self._bytes, self._runs = (gauge.labels(str(partition)) for gauge in _GAUGES)

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of keys."""

    @abstractmethod
    def warm_up(self) -> None:
        """Load the kernels of this table. The first call in a process can take seconds."""

    @abstractmethod
    def probe_and_insert(self, probes: Sequence[Probes], epoch: int) -> Pairs:
        """Match each fingerprint against earlier ones, then insert it unless its probe is query-only.

        The probabilistic search also finds some later fingerprints of the same call, and returns such a pair twice, in
        both directions.
        """

    @abstractmethod
    def seeds(self) -> Iterator[SeedKeys]:
        """Yield all keys, oldest first. Nothing may be inserted during the iteration."""

    @abstractmethod
    def insert_seed(self, seed: SeedKeys) -> None:
        """Insert keys of another store, without matching them."""

    @abstractmethod
    def freeze(self, offset: int) -> Frozen:
        """Return the present keys and the offset, to be written while later probes are processed."""

    @abstractmethod
    def load(self, path: Path) -> int:
        """Load saved keys; return their offset. Raises StateError."""

    @abstractmethod
    def update_metrics(self) -> None:
        """Set the gauges, and add the events since the last call to the counters."""

    def close(self) -> None:
        """Withdraw the gauges of this partition."""
        metrics.withdraw((str(self._partition),), *_GAUGES)
        metrics.withdraw((str(self._partition), self.table_name), metrics.SLICE_KEYS)

    def epoch_of(self, timestamp: int) -> int:
        """Return the epoch of a timestamp. Keys expire by epoch, so expiry does not depend on polling."""
        return epoch_of(timestamp, self._ttl)

    def _time_of(self, epoch: int) -> float:
        return epoch * (self._ttl / EPOCHS)

    def _middle_of(self, epoch: int) -> int:
        """Return a timestamp in the middle of an epoch, where rounding cannot change the epoch."""
        return int((epoch + 0.5) * (self._ttl / EPOCHS))

    def _report(self, counts: TableCounts, keys: int, size: int, runs: int) -> None:
        for event in counts.__slots__:
            total, before = getattr(counts, event), self._reported.get(event, 0)
            if total > before:
                _EVENTS[event].inc(total - before)
                self._reported[event] = total
        self._keys.set(keys)
        self._bytes.set(size)
        self._runs.set(runs)


class PermutedStore(TableStore):
    """A slice of a permuted table; with `psm`, the table of the probabilistic search."""

    table_name = "simhash"

    def __init__(self, settings: Settings, plan: Plan, partition: int, table: Table, psm: Psm | None) -> None:
        super().__init__(settings, plan, partition)
        self._k = plan.k
        self._psm = psm
        slice_settings = SliceSettings(codec=Codec(settings.codec), cap=settings.most_matches, ttl=self._ttl)
        self._slice = Slice(table, skip=plan.slice_bits, settings=slice_settings)

    def __len__(self) -> int:
        return len(self._slice)

    def warm_up(self) -> None:
        warm_up_slices(self._slice.settings.codec, self._slice.table.leading)

    def probe_and_insert(self, probes: Sequence[Probes], epoch: int) -> Pairs:
        fingerprints = concatenated([each.fingerprints for each in probes])
        keys = self._slice.table.keys_of(fingerprints)
        matches = self._slice.probe_and_insert(keys, self._k, self._time_of(epoch), query_only_of(probes))
        query, found = matches.query, matches.key
        if self._psm is not None:
            levels = concatenated([each.levels for each in probes if each.levels is not None])
            flipped = self._psm.find_all(self._slice, fingerprints, levels)
            query, found = np.concatenate([query, flipped.query]), np.concatenate([found, flipped.key])
        other = found != keys[query]
        return fingerprints[query[other]], self._slice.table.fingerprints_of(found[other])

    def seeds(self) -> Iterator[SeedKeys]:
        for run in self._slice.runs:
            for start in range(0, run.size, _SEED_KEYS):
                yield self._seed_of(run.read(start, min(start + _SEED_KEYS, run.size)), run.epoch)
        if self._slice.tail.size:
            yield self._seed_of(self._slice.tail, self._slice.epoch)

    def insert_seed(self, seed: SeedKeys) -> None:
        keys = self._slice.table.keys_of(seed.fingerprints)
        self._slice.probe_and_insert(keys, 0, self._time_of(self.epoch_of(seed.timestamp)))

    def _seed_of(self, keys: NDArray[np.uint64], epoch: int) -> SeedKeys:
        return SeedKeys(self._middle_of(epoch), self._slice.table.fingerprints_of(keys))

    def freeze(self, offset: int) -> Frozen:
        return freeze_slice(self._slice, plan=self._plan, partition=self._partition, offset=offset)

    def load(self, path: Path) -> int:
        return load_slice(path, self._slice, plan=self._plan, partition=self._partition)

    def update_metrics(self) -> None:
        self._report(self._slice.counts, len(self._slice), self._slice.nbytes, len(self._slice.runs))


class BucketStore(TableStore):
    """A slice of the bucket table, which has the buckets of all bands."""

    table_name = "bands"

    def __init__(self, settings: Settings, plan: Plan, partition: int) -> None:
        super().__init__(settings, plan, partition)
        self._table = BucketTable(common=settings.common_bucket, ttl=self._ttl)

    def __len__(self) -> int:
        return len(self._table)

    def warm_up(self) -> None:
        warm_up_buckets()

    def probe_and_insert(self, probes: Sequence[Probes], epoch: int) -> Pairs:
        fingerprints = concatenated([each.fingerprints for each in probes])
        keys = concatenated([each.keys for each in probes if each.keys is not None])
        matches = self._table.probe_and_insert(keys, fingerprints, self._time_of(epoch), query_only_of(probes))
        # Two pages that share several bands are found in several buckets.
        return _distinct(fingerprints[matches.query], matches.fingerprint)

    def seeds(self) -> Iterator[SeedKeys]:
        for keys, fingerprints, epoch in self._table.pairs():
            for start in range(0, keys.size, _SEED_KEYS):
                piece = slice(start, start + _SEED_KEYS)
                yield SeedKeys(self._middle_of(epoch), fingerprints[piece], keys[piece])

    def insert_seed(self, seed: SeedKeys) -> None:
        assert seed.keys is not None, "a seed for a bucket table must have keys"
        time = self._time_of(self.epoch_of(seed.timestamp))
        self._table.probe_and_insert(seed.keys, seed.fingerprints, time)

    def freeze(self, offset: int) -> Frozen:
        return freeze_buckets(self._table, plan=self._plan, partition=self._partition, offset=offset)

    def load(self, path: Path) -> int:
        return load_buckets(path, self._table, plan=self._plan, partition=self._partition)

    def update_metrics(self) -> None:
        self._report(self._table.counts, len(self._table), self._table.nbytes, self._table.run_count)


def _distinct(query: NDArray[np.uint64], found: NDArray[np.uint64]) -> Pairs:
    if not query.size:
        return query, found
    order = np.lexsort((found, query))
    query, found = query[order], found[order]
    is_new = np.ones(query.size, bool)
    is_new[1:] = (query[1:] != query[:-1]) | (found[1:] != found[:-1])
    return query[is_new], found[is_new]
