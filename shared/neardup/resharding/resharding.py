"""Resharding: the same deployment with another number of slices per table or another number of owners.

The location of a fingerprint depends on the plan and on the number of owners. The state of shards and owners is read,
split for the new plan, and becomes the *seeds*: the first records of the next generation of `probes` and `inbox`. All
other topics remain, so documents keep their names, and later pages get the same verdicts as without resharding.

Resharding requires that no worker is active and that no document waits for answers or evidence. This module maps the
state to seeds; `state_directory.py` applies it to a state directory and `cluster.py` to Kafka.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from neardup.deployment.deployment import Deployment
from neardup.errors import NotAtRest, SettingsError
from neardup.index.plan.routing import Routing, owner_of
from neardup.log import Output
from neardup.messages.seeds import Entry, SeedKeys, write_seed_entries, write_seed_keys
from neardup.settings import Settings, variable_of
from neardup.stream.aggregator.stage import Aggregator
from neardup.stream.aggregator.store import VERSION as LAYOUT
from neardup.stream.shard.stage import Shard

CHANGEABLE: Final = ("slice_bits", "band_slice_bits", "owners")
_ENTRIES: Final = 10_000
"""Number of directory entries that are collected per owner before they are sent."""


@dataclass(frozen=True)
class Resharding:
    """A transition from one generation of a deployment to the next."""

    old: Deployment
    new: Deployment

    @classmethod
    def of(
        cls,
        settings: Settings,
        *,
        slice_bits: int | None = None,
        band_slice_bits: int | None = None,
        owners: int | None = None,
    ) -> "Resharding":
        """Create a resharding of these settings. Without further arguments, every table gets twice as many slices.

        Raises SettingsError when nothing would change or the tables cannot be split that way.
        """
        old = Deployment(settings)
        if slice_bits is band_slice_bits is owners is None:
            # The single table of the probabilistic search cannot be sliced.
            slice_bits = settings.slice_bits + (not old.plan.header_bits)
            band_slice_bits = settings.band_slice_bits + (old.plan.bands > 0)
        new = Deployment(
            replace(
                settings,
                slice_bits=settings.slice_bits if slice_bits is None else slice_bits,
                band_slice_bits=settings.band_slice_bits if band_slice_bits is None else band_slice_bits,
                owners=settings.owners if owners is None else owners,
                generation=settings.generation + 1,
            )
        )
        if new.plan == old.plan and new.settings.owners == settings.owners:
            requested = {"slice_bits": slice_bits, "band_slice_bits": band_slice_bits, "owners": owners}
            got = {name: value for name, value in requested.items() if value is not None}
            raise SettingsError(f"expected a new number of slices or owners, got the present numbers: {got}")
        return cls(old, new)

    @cached_property
    def _routing(self) -> Routing:
        return Routing(self.new.plan)

    def changes(self) -> list[tuple[str, str, str]]:
        """Return (variable, old value, new value) of every setting that must change for all workers."""
        return [
            (variable_of(name), str(getattr(self.old.settings, name)), str(getattr(self.new.settings, name)))
            for name in (*CHANGEABLE, "generation")
            if getattr(self.old.settings, name) != getattr(self.new.settings, name)
        ]

    def seeds_of_shard(self, partition: int, shard: Shard) -> Iterator[Output]:
        """Yield the content of an old shard partition as seeds of the new ones."""
        place = Routing(self.old.plan).place_of(partition)
        for seed in shard.seeds():
            if place.table is None:
                assert seed.keys is not None
                places = self._routing.partitions_of_buckets(seed.keys)
            else:
                keys = self.new.plan.tables[place.table].keys_of(seed.fingerprints)
                places = self._routing.partitions_of_keys(place.table, keys)
            for number in np.unique(places).tolist():
                message = write_seed_keys(_subset(seed, places == number), self.new.plan.digest)
                yield Output(self.new.topics.probes, number, None, message)

    def seeds_of_owner(self, number: int, owner: Aggregator) -> Iterator[Output]:
        """Yield the content of an old owner as seeds of the new ones. Raises NotAtRest when a document is pending."""
        self.require_drained(number, owner)
        batches: dict[int, list[Entry]] = {}
        for fingerprint, entry in owner.seed_entries():
            owner_number = owner_of(fingerprint, self.new.settings.owners)
            batches.setdefault(owner_number, []).append(entry)
            if len(batches[owner_number]) >= _ENTRIES:
                yield from self._entries(owner_number, batches.pop(owner_number))
        for owner_number, entries in sorted(batches.items()):
            yield from self._entries(owner_number, entries)

    @staticmethod
    def require_drained(number: int, owner: Aggregator) -> None:
        """Raise NotAtRest when a document waits for answers or evidence, which would never arrive."""
        if owner.pending:
            raise NotAtRest(
                f"expected no pending document, got {owner.pending} at owner {number}: start shards and aggregators, "
                "wait until `neardup status` shows that they have no lag, stop them and try again"
            )

    def _entries(self, owner: int, entries: list[Entry]) -> Iterator[Output]:
        for message in write_seed_entries(entries, LAYOUT, self.new.plan.digest):
            yield Output(self.new.topics.inbox, owner, None, message)


def _subset(seed: SeedKeys, chosen: NDArray[np.bool_]) -> SeedKeys:
    return SeedKeys(
        seed.timestamp, seed.fingerprints[chosen], None if seed.keys is None else seed.keys[chosen]
    )  # fmt: skip
