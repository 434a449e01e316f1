"""The stage of the shard: one slice of a table, which matches and inserts each probe in one step, in log order."""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Final

import numpy as np

from neardup.errors import Corrupt
from neardup.index.plan.plan import Plan
from neardup.index.plan.routing import Routing, owners_among, rows_by_owner
from neardup.index.psm.search import Psm
from neardup.log import Output, Record
from neardup.messages.answers import Answers, split_pairs, write_answers
from neardup.messages.formats import MessageContext
from neardup.messages.probes import Probes, concatenated
from neardup.messages.registry import PROBES_TOPIC, ShardMessage
from neardup.messages.seeds import SeedKeys
from neardup.messages.topics import Topics
from neardup.runtime.stage import Stage, Waves, decoded
from neardup.settings import Settings
from neardup.signatures.signature import SignatureOptions
from neardup.stream.shard.table_store import BucketStore, Pairs, PermutedStore, TableStore
from neardup.types import BatchId

_PAIRS: Final = 32_000
"""Maximum number of pairs in a message of answers: 512 KB."""
_BATCHES: Final = 16_000
"""Maximum number of batches in a message of answers. A poll can return many probes, and each batch takes four of the
items that `wire.MAX_ITEMS` limits.
"""
_NO_PAIRS: Final[list[Pairs]] = [(np.empty(0, np.uint64), np.empty(0, np.uint64))]
_SNAPSHOT_EVERY: Final = 8
"""A snapshot is written once an eighth of the slice is new, so that each key is written at most eight times."""
_SMALL: Final = 1 << 20
"""Up to this number of keys, every checkpoint writes a snapshot."""


class Shard(Stage):
    """One slice of a table. Answers each owner with the completed batches and the matches of its fingerprints."""

    name = "shard"

    def __init__(self, *, settings: Settings, plan: Plan, partition: int, psm: Psm | None = None) -> None:
        self._topics = Topics.under(settings.prefix, settings.generation)
        self._owners = settings.owners
        self._plan = plan
        self._partition = partition
        place = Routing(plan).place_of(partition)
        self._context = MessageContext(
            plan=plan.digest,
            generation=settings.generation,
            partitions=plan.partitions,
            owners=settings.owners,
            mips=SignatureOptions.of(settings).m,
        )
        self._has_buckets = place.table is None
        self._table: TableStore
        if place.table is None:
            self._table = BucketStore(settings, plan, partition)
        else:
            self._table = PermutedStore(settings, plan, partition, plan.tables[place.table], psm)
        self._path: Path
        self._next = 0
        self._saved = 0
        self._keys_saved = 0

    def __len__(self) -> int:
        """Return the number of keys."""
        return len(self._table)

    def open(self, directory: Path) -> int | None:
        """Load the snapshot and return its offset; without a snapshot, return the start of the log."""
        directory.mkdir(parents=True, exist_ok=True)
        self._table.warm_up()
        self._path = directory / "slice"
        if self._path.exists():
            self._next = self._saved = self._table.load(self._path)
            self._keys_saved = len(self._table)
        # A partition without traffic reports its size, too.
        self._table.update_metrics()
        return self._next

    def process(self, records: Sequence[Record]) -> Waves:
        """Return one wave: answers, usually one message per owner."""
        messages, rejected = decoded(records, self._read)
        batches: dict[int, list[BatchId]] = {}
        pairs: dict[int, list[Pairs]] = {}
        for epoch, some in groupby(messages, key=lambda each: self._epoch_of(*each)):
            if epoch is None:
                for _, seed in some:
                    assert isinstance(seed, SeedKeys)
                    self._table.insert_seed(seed)
            else:
                self._answer([probe for _, probe in some if isinstance(probe, Probes)], epoch, batches, pairs)
        self._next = records[-1].offset + 1
        self._table.update_metrics()
        return Waves([self._outputs(batches, pairs)], rejected)

    def checkpoint(self) -> int:
        """Write a snapshot if enough is new; return the offset of the last snapshot."""
        return self.freeze()()

    def freeze(self) -> Callable[[], int]:
        """Prepare a snapshot; the returned function writes it, which takes seconds for a large slice."""
        offset, keys = self._next, len(self._table)
        new = keys - self._keys_saved
        if offset == self._saved or (keys >= _SMALL and new * _SNAPSHOT_EVERY < keys):
            return lambda: self._saved
        frozen = self._table.freeze(offset)

        def save() -> int:
            frozen.write(self._path)
            self._saved, self._keys_saved = offset, keys
            return offset

        return save

    def seeds(self) -> Iterator[SeedKeys]:
        """Yield all keys of the slice, as seeds of other slices."""
        return self._table.seeds()

    def close(self) -> None:
        """Withdraw the gauges of this partition."""
        self._table.close()

    def _read(self, record: Record) -> ShardMessage:
        message = PROBES_TOPIC.read(record.value, self._context)
        if isinstance(message, SeedKeys) and (message.keys is not None) != self._has_buckets:
            expected = "with" if self._has_buckets else "without"
            raise Corrupt(f"expected seeds {expected} keys for this table, got seeds of another kind of table")
        return message

    def _epoch_of(self, record: Record, message: ShardMessage) -> int | None:
        """Return the epoch of probes; None for seeds, which carry their own time."""
        return None if isinstance(message, SeedKeys) else self._table.epoch_of(record.timestamp)

    def _answer(
        self,
        probes: Sequence[Probes],
        epoch: int,
        batches: dict[int, list[BatchId]],
        pairs: dict[int, list[Pairs]],
    ) -> None:
        for probe in probes:
            for owner in owners_among(probe.fingerprints, self._owners):
                batches.setdefault(owner, []).append(probe.batch)
        query, found = self._table.probe_and_insert(probes, epoch)
        if not query.size:
            return
        for owner, chosen in rows_by_owner(query, self._owners):
            pairs.setdefault(owner, []).append((query[chosen], found[chosen]))

    def _outputs(
        self,
        batches: dict[int, list[BatchId]],
        pairs: dict[int, list[Pairs]],
    ) -> list[Output]:
        outputs = []
        for owner, done in sorted(batches.items()):
            query, found = (concatenated(column) for column in zip(*pairs.get(owner, _NO_PAIRS), strict=True))
            *earlier, last = split_pairs(query.size, _PAIRS)
            # Only the last piece lists completed batches: no message after it may contain matches of such a batch.
            completed = tuple(dict.fromkeys(done))
            messages = [Answers(self._partition, (), query[piece], found[piece]) for piece in earlier]
            messages.append(Answers(self._partition, completed[:_BATCHES], query[last], found[last]))
            messages += [
                Answers(self._partition, completed[start : start + _BATCHES], query[:0], found[:0])
                for start in range(_BATCHES, len(completed), _BATCHES)
            ]
            outputs += [
                Output(self._topics.inbox, owner, None, write_answers(each, self._plan.digest)) for each in messages
            ]
        return outputs
