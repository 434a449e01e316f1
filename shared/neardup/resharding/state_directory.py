"""Resharding of the state directory of an embedded run, which has no log for seeds.

The stages of the next generation receive the seeds directly, in new directories next to the old ones. The file that
names the valid generation is replaced last. A crash before that leaves the state unchanged, and the next attempt starts
over. A crash after that leaves old directories, which are never read.
"""

import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from neardup.deployment.deployment import SERVICES, Deployment
from neardup.embedded.embedded import FILE, Progress, embedded_settings, read_progress, require_plan, write_progress
from neardup.embedded.state_lock import StateLock
from neardup.errors import InputError, WrongState
from neardup.index.plan.routing import Routing
from neardup.log import Output, Partition, PlainRecord
from neardup.resharding.resharding import Resharding
from neardup.runtime.stage import Stage
from neardup.settings import Settings
from neardup.stream.aggregator.stage import Aggregator
from neardup.stream.shard.stage import Shard


def plan_resharding(
    state: Path, settings: Settings, *, slice_bits: int | None = None, band_slice_bits: int | None = None
) -> Resharding:
    """Return the resharding of an embedded state without changing it.

    Raises InputError if there is no state, StateInUse if it is in use, and WrongState if a run is unfinished or had
    other settings.
    """
    if not (state / FILE).exists():
        raise InputError(f"{state}: expected the state of `neardup dedup`, with {FILE}, got none")
    with StateLock(state):
        progress = _read_progress(state)
    before = embedded_settings(settings, state, progress.generation)
    resharding = Resharding.of(before, slice_bits=slice_bits, band_slice_bits=band_slice_bits)
    require_plan(state, progress, resharding.old.plan.digest)
    _require_finished(state, progress)
    return resharding


def reshard_state(state: Path, resharding: Resharding, *, on_step: Callable[[str], None] = lambda line: None) -> None:
    """Apply a resharding. `on_step` receives a line about each step. Raises StateError, in particular StateInUse."""
    with StateLock(state):
        _reshard(state, resharding, on_step)


def _reshard(state: Path, resharding: Resharding, on_step: Callable[[str], None]) -> None:
    progress = _read_progress(state)
    # Another command may have used the directory since the resharding was planned.
    require_plan(state, progress, resharding.old.plan.digest)
    _require_finished(state, progress)
    if progress.generation != resharding.old.settings.generation:
        raise WrongState(
            f"{state}: expected generation {resharding.old.settings.generation}, got {progress.generation}: another "
            "command resharded it; run the command again"
        )
    _remove(state, resharding.new)
    _reshard_owner(state, resharding)
    on_step("owner 0: its directory")
    old = resharding.old.plan
    for table in (*range(len(old.tables)), *([None] if old.bands else [])):
        keys = _reshard_table(state, resharding, table)
        on_step(f"{'bands' if table is None else f'simhash/{table}'}: {keys:,} keys")
    write_progress(
        state, replace(progress, plan=resharding.new.plan.digest, generation=resharding.new.settings.generation)
    )
    _remove(state, resharding.old)


def _read_progress(state: Path) -> Progress:
    progress = read_progress(state)
    assert progress is not None, "no command removes the file"
    return progress


def _require_finished(state: Path, progress: Progress) -> None:
    if not progress.clean:
        raise WrongState(
            f"{state}: expected a finished run, got one that was interrupted: run `neardup dedup` once more to finish "
            "it"
        )


def _reshard_owner(state: Path, resharding: Resharding) -> None:
    owner = _open_stage(state, resharding.old, "aggregator", 0)
    assert isinstance(owner, Aggregator)
    try:
        _feed(state, resharding.new, "aggregator", [0], resharding.seeds_of_owner(0, owner))
    finally:
        owner.close()


def _reshard_table(state: Path, resharding: Resharding, table: int | None) -> int:
    """Reshard all slices of one table, or of the buckets. Return the number of keys."""
    places = Routing(resharding.new.plan).partitions_of_table(table)
    held = 0

    def seeds() -> Iterator[Output]:
        nonlocal held
        for partition in Routing(resharding.old.plan).partitions_of_table(table):
            shard = _open_stage(state, resharding.old, "shard", partition)
            assert isinstance(shard, Shard)
            held += len(shard)
            yield from resharding.seeds_of_shard(partition, shard)
            shard.close()

    _feed(state, resharding.new, "shard", places, seeds())
    return held


def _feed(
    state: Path, deployment: Deployment, service: str, partitions: Iterable[int], seeds: Iterator[Output]
) -> None:
    """Create stages of these partitions, process the seeds and save."""
    stages = {number: _open_stage(state, deployment, service, number) for number in partitions}
    offsets = dict.fromkeys(stages, 0)
    for seed in seeds:
        assert seed.partition is not None
        record = PlainRecord(
            topic=seed.topic,
            partition=seed.partition,
            offset=offsets[seed.partition],
            timestamp=0,
            key=None,
            value=seed.value,
            headers=(),
        )
        waves = stages[seed.partition].process([record])
        assert not waves.rejected, f"{waves.rejected[0].error}"
        offsets[seed.partition] += 1
    for stage in stages.values():
        stage.checkpoint()
        stage.close()


def _open_stage(state: Path, deployment: Deployment, service: str, number: int) -> Stage:
    spec = SERVICES[service]
    partition = Partition(spec.topic(deployment.topics), number)
    stage = spec.make_stage(deployment, partition)
    stage.open(state / str(partition))
    return stage


def _remove(state: Path, deployment: Deployment) -> None:
    """Remove the directories of a generation that is not in use."""
    for topic in (deployment.topics.probes, deployment.topics.inbox):
        for directory in state.glob(f"{topic}-*"):
            shutil.rmtree(directory)
