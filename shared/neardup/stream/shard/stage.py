"""The shard: one slice of one table, which answers probes and remembers them in one step, in the order of the log."""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from neardup.errors import Corrupt
from neardup.index.plan.owners import owners_among, rows_by_owner
from neardup.index.plan.plan import Plan
from neardup.index.plan.routing import Routing
from neardup.index.psm.search import Psm
from neardup.log import Output, Record
from neardup.messages import wire
from neardup.messages.answers import Answers, split_pairs, write_answers
from neardup.messages.probes import Probes, concatenated, read_probes
from neardup.messages.seeds import RETIRED, SeedKeys, read_seed_keys, stop_at_retired
from neardup.messages.topics import Topics
from neardup.runtime.stage import Stage, Waves, decoded
from neardup.settings import Settings
from neardup.stream.shard.table_store import BucketStore, PermutedStore, TableStore
from neardup.types import BatchId

KINDS: Final = ("probes", "seed-keys", RETIRED)
"""What the log of a shard partition carries."""
_PAIRS: Final = 32_000
"""In a message of answers: 512 KB."""
_BATCHES: Final = 16_000
"""In a message of answers: each is four items, and a poll may bring any number of probes."""
_NO_PAIRS: Final = [(np.empty(0, np.uint64), np.empty(0, np.uint64))]
_SNAPSHOT_EVERY: Final = 8
"""A snapshot is written when an eighth of the slice is new: then it costs each key eight writes at most."""
_SMALL: Final = 1 << 20
"""Keys up to which every checkpoint writes a snapshot."""


class Shard(Stage):
    """Owns a slice. Answers each owner: which batches are done, and what was found near its fingerprints."""

    name = "shard"

    def __init__(self, *, settings: Settings, plan: Plan, partition: int, psm: Psm | None = None) -> None:
        self._generation = settings.generation
        self._topics = Topics.under(settings.prefix, settings.generation)
        self._owners = settings.owners
        self._plan = plan
        self._partition = partition
        place = Routing(plan).place_of(partition)
        self._has_buckets = place.table is None
        self._holder: TableStore
        if place.table is None:
            self._holder = BucketStore(settings, plan, partition)
        else:
            self._holder = PermutedStore(settings, plan, partition, plan.tables[place.table], psm)
        self._path: Path
        self._next = 0
        self._saved = 0
        self._keys_saved = 0

    def __len__(self) -> int:
        """Keys held."""
        return len(self._holder)

    def open(self, directory: Path) -> int | None:
        """What the snapshot says, else the start of the log."""
        directory.mkdir(parents=True, exist_ok=True)
        self._holder.warm_up()
        self._path = directory / "slice"
        if self._path.exists():
            self._next = self._saved = self._holder.load(self._path)
            self._keys_saved = len(self._holder)
        # A partition without traffic reports its size, too.
        self._holder.measure()
        return self._next

    def process(self, records: Sequence[Record]) -> Waves:
        """One wave: answers, a message an owner."""
        messages, rejected = decoded(records, self._read)
        batches: dict[int, list[BatchId]] = {}
        pairs: dict[int, list[tuple[NDArray[np.uint64], NDArray[np.uint64]]]] = {}
        for epoch, some in groupby(messages, key=lambda each: self._epoch_of(*each)):
            if epoch is None:
                for _, seed in some:
                    assert isinstance(seed, SeedKeys)
                    self._holder.fill(seed)
            else:
                self._answer([probe for _, probe in some if isinstance(probe, Probes)], epoch, batches, pairs)
        self._next = records[-1].offset + 1
        self._holder.measure()
        return Waves([self._outputs(batches, pairs)], rejected)

    def checkpoint(self) -> int:
        """Write a snapshot if enough is new; the offset of the last one is what is safe."""
        return self.freeze()()

    def freeze(self) -> Callable[[], int]:
        """The same, and only a moment of it here: a large slice takes seconds to write, and probes must not wait."""
        offset, keys = self._next, len(self._holder)
        new = keys - self._keys_saved
        if offset == self._saved or (keys >= _SMALL and new * _SNAPSHOT_EVERY < keys):
            return lambda: self._saved
        frozen = self._holder.freeze(offset)

        def save() -> int:
            frozen.write(self._path)
            self._saved, self._keys_saved = offset, keys
            return offset

        return save

    def contents(self) -> Iterator[SeedKeys]:
        """Everything that the slice holds, as the seeds of another one."""
        return self._holder.contents()

    def close(self) -> None:
        """The slice is another worker's to report."""
        self._holder.close()

    def _read(self, record: Record) -> Probes | SeedKeys:
        kind, body = wire.decode_any(record.value, KINDS)
        if kind == RETIRED:
            stop_at_retired(body, self._generation)
        if kind == "seed-keys":
            seed = read_seed_keys(body, self._plan.digest)
            if (seed.keys is not None) != self._has_buckets:
                raise Corrupt(f"expected seeds {'with' if self._has_buckets else 'without'} keys, got the other kind")
            return seed
        return read_probes(body, self._plan.digest)

    def _epoch_of(self, record: Record, message: Probes | SeedKeys) -> int | None:
        """Of probes; seeds have their own time."""
        return None if isinstance(message, SeedKeys) else self._holder.epoch_of(record.timestamp)

    def _answer(
        self,
        probes: Sequence[Probes],
        epoch: int,
        batches: dict[int, list[BatchId]],
        pairs: dict[int, list[tuple[NDArray[np.uint64], NDArray[np.uint64]]]],
    ) -> None:
        for probe in probes:
            for owner in owners_among(probe.fingerprints, self._owners):
                batches.setdefault(owner, []).append(probe.batch)
        query, found = self._holder.probe_and_insert(probes, epoch)
        if not query.size:
            return
        for owner, chosen in rows_by_owner(query, self._owners):
            pairs.setdefault(owner, []).append((query[chosen], found[chosen]))

    def _outputs(
        self,
        batches: dict[int, list[BatchId]],
        pairs: dict[int, list[tuple[NDArray[np.uint64], NDArray[np.uint64]]]],
    ) -> list[Output]:
        outputs = []
        for owner, done in sorted(batches.items()):
            query, found = (concatenated(column) for column in zip(*pairs.get(owner, _NO_PAIRS), strict=True))
            *earlier, last = split_pairs(query.size, _PAIRS)
            # Done is said from the last piece on: a batch is complete when all its matches are there.
            said = tuple(dict.fromkeys(done))
            messages = [Answers(self._partition, (), query[piece], found[piece]) for piece in earlier]
            messages.append(Answers(self._partition, said[:_BATCHES], query[last], found[last]))
            messages += [
                Answers(self._partition, said[start : start + _BATCHES], query[:0], found[:0])
                for start in range(_BATCHES, len(said), _BATCHES)
            ]
            outputs += [
                Output(self._topics.inbox, owner, None, write_answers(each, self._plan.digest)) for each in messages
            ]
        return outputs
