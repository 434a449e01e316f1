"""Resharding of a deployment on Kafka from its log alone, without the state directories of workers.

The stages read the old log from its start into a scratch directory. Their outputs are dropped, because the workers sent
them long ago. Their state becomes the seeds of the new topics. The order of steps guarantees that a crash leaves either
the old or the new generation intact, and that the command can be repeated:

1. Check that no worker is active on the old generation and that no record is pending.
2. Delete the new topics that an interrupted attempt left, and create them empty.
3. Send the seeds, then check that the old log has not changed since step 1.
4. Set the offsets of the new featurizers to those of the old ones.
5. End the old partitions with a record that stops late readers. From then on the new generation is valid.
"""

import asyncio
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path
from typing import Final

from neardup.deployment.deployment import SERVICES, Deployment, group_of
from neardup.deployment.topics import topic_specs
from neardup.errors import NotAtRest, Retired, TopicMismatch, WireError
from neardup.log import Log, Output, Partition, TopicSpec
from neardup.log.cluster import ClusterView, TopicView
from neardup.log.kafka import KafkaPartitions, look
from neardup.messages import wire
from neardup.messages.seeds import RETIRED_SCHEMA, write_retired
from neardup.resharding.resharding import Resharding
from neardup.runtime.stage import Stage
from neardup.stream.aggregator.stage import Aggregator
from neardup.stream.shard.stage import Shard

RESHARDED_SERVICES: Final = ("featurizer", "shard", "aggregator")
"""Services whose topics or state belong to one generation. The recluster service is not affected."""
_AT_ONCE: Final = 16
"""Number of seeds that are sent at once."""
_SAVE_EVERY: Final = 50
"""Number of batches of records between two checkpoints of a stage. Checkpoints bound the unsaved state in memory."""


class ClusterResharding:
    """One resharding. `on_step` receives a line about each step."""

    def __init__(
        self,
        resharding: Resharding,
        log: Log,
        partitions: KafkaPartitions,
        scratch: Path,
        *,
        on_step: Callable[[str], None] = lambda line: None,
    ) -> None:
        self._resharding = resharding
        self._old, self._new = resharding.old, resharding.new
        self._log, self._partitions = log, partitions
        self._scratch = scratch
        self._on_step = on_step

    async def check(self) -> ClusterView:
        """Check the cluster without changing anything.

        Raises TopicMismatch when topics differ from the settings, NotAtRest when workers are active or records are
        pending, Retired when the generation was already resharded.
        """
        view = await self._inspect()
        retired = await self._retired_partitions(view)
        if len(retired) == len(_partitions(self._old, view)):
            raise Retired(
                f"expected a generation in use, got one that was already resharded: continue with "
                f"NEARDUP_GENERATION={self._new.settings.generation}"
            )
        if not retired:
            _require_idle(self._resharding, view)
        return view

    async def run(self) -> None:
        """Perform all steps. Raises the errors of `check`, and LogError when the broker refuses a request."""
        view = await self.check()
        if not await self._retired_partitions(view):
            await self._seed(view)
            self._require_unchanged(view, await self._inspect())
            await self._hand_over_pages(view)
        await self._retire(await self._inspect())

    async def _inspect(self) -> ClusterView:
        names = [self._old.topics.pages]
        names += [topic for each in (self._old, self._new) for topic in (each.topics.probes, each.topics.inbox)]
        groups = [group_of(name, each.settings) for each in (self._old, self._new) for name in RESHARDED_SERVICES]
        return await look(self._old.settings, names, groups)

    async def _retired_partitions(self, view: ClusterView) -> set[Partition]:
        """Return the old partitions that have ended."""
        found = set()
        for partition, (first, end) in _partitions(self._old, view).items():
            if end > first:
                async for record, *_ in self._partitions.read(partition, end - 1, end):
                    if _is_retired(record.value):
                        found.add(partition)
        return found

    async def _seed(self, view: ClusterView) -> None:
        owners, shards = self._old.settings.owners, self._old.plan.partitions
        # Read all owners before changing anything: a pending document at any of them stops the resharding.
        for number in range(owners):
            owner = await self._replay("aggregator", number, view)
            assert isinstance(owner, Aggregator)
            try:
                self._resharding.require_drained(number, owner)
                await asyncio.to_thread(owner.checkpoint)
            finally:
                owner.close()
            self._on_step(f"owner {number} of {owners}: read")
        await self._make_topics()
        for number in range(owners):
            owner = self._open_stage("aggregator", number)
            assert isinstance(owner, Aggregator)
            sent = await self._send(self._resharding.seeds_of_owner(number, owner))
            owner.close()
            self._on_step(f"owner {number} of {owners}: its directory, {sent:,} messages")
        for number in range(shards):
            shard = await self._replay("shard", number, view)
            assert isinstance(shard, Shard)
            await self._send(self._resharding.seeds_of_shard(number, shard))
            self._on_step(f"shard partition {number} of {shards}: {len(shard):,} keys")
            shard.close()

    async def _replay(self, service: str, number: int, view: ClusterView) -> Stage:
        """Return a stage in the scratch directory that has read its partition to the end."""
        partition = _partition(self._old, service, number)
        first, end = view.topics[partition.topic].bounds[partition]
        stage, batches = self._open_stage(service, number), 0
        async for records in self._partitions.read(partition, first, end):
            await asyncio.to_thread(stage.process, records)
            batches += 1
            if batches % _SAVE_EVERY == 0:
                await asyncio.to_thread(stage.checkpoint)
        return stage

    def _open_stage(self, service: str, number: int) -> Stage:
        partition = _partition(self._old, service, number)
        stage = SERVICES[service].make_stage(self._old, partition)
        stage.open(self._scratch / str(partition))
        return stage

    async def _make_topics(self) -> None:
        names = (self._new.topics.probes, self._new.topics.inbox)
        await self._partitions.delete_topics(names)
        specs: list[TopicSpec] = [spec for spec in topic_specs(self._new.settings) if spec.name in names]
        for name, state in (await self._log.create_topics(specs)).items():
            if state != "created":
                raise TopicMismatch(f"{name}: expected to create the topic, got: {state}; repeat the command")
            self._on_step(f"{name}: created")

    async def _send(self, seeds: Iterable[Output]) -> int:
        left, sent = iter(seeds), 0
        while some := await asyncio.to_thread(lambda: list(islice(left, _AT_ONCE))):
            await self._log.send(some)
            sent += len(some)
        return sent

    def _require_unchanged(self, before: ClusterView, after: ClusterView) -> None:
        _require_idle(self._resharding, after)
        for partition, bounds in _partitions(self._old, before).items():
            if after.topics[partition.topic].bounds[partition] != bounds:
                raise NotAtRest(
                    f"{partition}: expected no new records during the resharding, got some; stop all workers and try "
                    "again"
                )

    async def _hand_over_pages(self, view: ClusterView) -> None:
        committed = view.groups[group_of("featurizer", self._old.settings)].committed
        pages = {each: offset for each, offset in committed.items() if each.topic == self._old.topics.pages}
        if pages:
            await self._partitions.set_offsets(group_of("featurizer", self._new.settings), pages)

    async def _retire(self, view: ClusterView) -> None:
        left = _partitions(self._old, view).keys() - await self._retired_partitions(view)
        message = write_retired(self._new.settings.generation)
        await self._log.send([Output(topic, number, None, message) for topic, number in sorted(left)])
        self._on_step(f"{self._old.topics.probes}, {self._old.topics.inbox}: retired")


def _partition(deployment: Deployment, service: str, number: int) -> Partition:
    return Partition(SERVICES[service].topic(deployment.topics), number)


def _partitions(deployment: Deployment, view: ClusterView) -> dict[Partition, tuple[int, int]]:
    """Return the bounds of every partition of probes and inbox. Raises TopicMismatch when their number is wrong."""
    topics, found = deployment.topics, dict[Partition, tuple[int, int]]()
    for topic, count in ((topics.probes, deployment.plan.partitions), (topics.inbox, deployment.settings.owners)):
        there = view.topics.get(topic, TopicView(topic, {}))
        if len(there.bounds) != count:
            raise TopicMismatch(
                f"{topic}: expected {count} partitions, got {len(there.bounds)}: use the settings of its deployment"
            )
        found |= there.bounds
    return found


def _require_idle(resharding: Resharding, view: ClusterView) -> None:
    for deployment in (resharding.old, resharding.new):
        for service in RESHARDED_SERVICES:
            group = view.groups[group_of(service, deployment.settings)]
            if group.members:
                raise NotAtRest(
                    f"group {group.name}: expected no workers, got {len(group.members)}: stop them first (a worker "
                    "with a fixed name still counts for NEARDUP_SESSION_TIMEOUT_SECONDS after its end)"
                )
    owners = view.groups[group_of("aggregator", resharding.old.settings)]
    lag = owners.lag(view.topics[resharding.old.topics.inbox])
    if any(lag.values()):
        most = max(lag, key=lambda each: lag[each])
        raise NotAtRest(
            f"{most}: expected every record to be processed, got {lag[most]} pending: start shards and aggregators, "
            "wait until `neardup status` shows that they have no lag, stop them and try again"
        )


def _is_retired(value: bytes | None) -> bool:
    try:
        wire.decode(value, RETIRED_SCHEMA)
    except WireError:
        return False
    return True
