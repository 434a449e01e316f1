"""A simulation of the protocol in one thread, with faults between services that are chosen by a seed.

Featurizers, shards and owners run on the in-process log. The seed decides each step: a worker reads some records, sends
one more output, freezes its state, writes the frozen state, or crashes and restarts from its checkpoint or without
state. A worker may also be declared dead, so that another worker takes over its partition while its own outputs still
arrive. After the faulty phase all queues drain, and the verdicts must equal those of an oracle that compares every page
with all earlier pages. Canaries are planted throughout. They must not affect the verdicts of pages, and each canary
must be found if the oracle finds its original.

    python -m tests.simulation.simulate --seeds 10000
"""

import argparse
import asyncio
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from neardup.deployment.deployment import SERVICES, Deployment
from neardup.deployment.topics import topic_specs
from neardup.log import Output, Partition
from neardup.log.memory import MemoryLog
from neardup.runtime.stage import Stage
from neardup.settings import Settings
from tests.simulation.crawl import crawl_of
from tests.simulation.end import End

MOST_STEPS = 200_000
LINE_EVERY = 500
"""Number of seeds between two progress lines when the output is not a terminal."""
Place = tuple[str, Partition]
"""A service and its partition. Two services may read the same topic."""


@dataclass
class Faults:
    """Probability of each fault per step."""

    crash: float = 0.01
    lose_state: float = 0.3
    takeover: float = 0.008
    repeat_send: float = 0.02


@dataclass
class Worker:
    """One run of a stage on a partition, with outputs that are not sent yet and state that is not saved yet."""

    service: str
    partition: Partition
    stage: Stage
    directory: Path
    position: int
    unsent: list[list[Output]] = field(default_factory=list)
    unsaved: bool = False
    save: Callable[[], int] | None = None
    """Writes the frozen state. The worker may have read more records since the freeze."""

    @property
    def place(self) -> Place:
        return self.service, self.partition

    def close(self) -> None:
        self.stage.close()


class Simulation:
    """The simulation of one seed."""

    def __init__(
        self, seed: int, directory: Path, make_stage: Callable[[str, Deployment, Partition], Stage] | None = None
    ):
        self.random = random.Random(seed)
        self.faults = Faults()
        self.settings = replace(_settings(self.random), corpus=str(directory / "corpus"))
        self.deployment = Deployment(self.settings)
        self.topics = self.deployment.topics
        self.log = MemoryLog(clock=lambda: self.now)
        self.now = 1_000.0
        self.committed: dict[Place, int] = {}
        self.live: dict[Place, Worker] = {}
        self.zombies: list[Worker] = []
        self.happened: Counter[str] = Counter()
        self._directory = directory
        self._directories = 0
        self._make_stage = make_stage or _stage

    async def run(self) -> None:
        """Run the faulty phase, drain, and check. Raises AssertionError if a guarantee is broken."""
        await self.log.create_topics([replace(spec, configs={}) for spec in topic_specs(self.settings)])
        for service, spec in SERVICES.items():
            topic = spec.topic(self.topics)
            for number in range(await self.log.partitions(topic)):
                partition = Partition(topic, number)
                self.live[service, partition] = self._open(service, partition, None)
        try:
            await self._faulty_phase()
            await self._drain()
            stages = [(worker.partition, worker.stage) for worker in self.live.values()]
            self.happened += End(self.deployment, self.log, stages, self._directory).check()
        finally:
            for worker in (*self.live.values(), *self.zombies):
                worker.close()

    async def _faulty_phase(self) -> None:
        crawl = list(crawl_of(self.random))
        while crawl or self.random.random() < 0.98:
            if crawl and self.random.random() < 0.3:
                for page in crawl[: self.random.randint(1, 6)]:
                    await self._produce(page)
                    crawl.pop(0)
            for _ in range(self.random.randint(1, 20)):
                await self._step()

    async def _produce(self, page: bytes) -> None:
        # Clocks of producers differ: timestamps are not monotonic, and some are equal.
        self.now = 1_000.0 + self.random.randrange(60)
        number = self.random.randrange(self.settings.page_partitions)
        await self.log.send([Output(self.topics.pages, number, None, page)])

    async def _step(self) -> None:
        draw = self.random.random()
        worker = self.random.choice(list(self.live.values()))
        if draw < self.faults.crash:
            self._crash(worker)
        elif draw < self.faults.crash + self.faults.takeover:
            self._take_over(worker)
        elif self.zombies and draw < 0.1:
            await self._zombie_step(self.random.choice(self.zombies))
        else:
            await self._work(worker)

    async def _work(self, worker: Worker) -> bool:
        """Save, send one output, freeze, or read. Return False if there was nothing to do."""
        if worker.save is not None and self.random.random() < 0.3:
            self.committed[worker.place] = worker.save()
            worker.save = None
        elif worker.unsent:
            await self._send_one(worker)
        elif worker.unsaved and worker.save is None and self.random.random() < 0.3:
            worker.save = worker.stage.freeze()
            worker.unsaved = False
        else:
            return self._read(worker) or worker.save is not None
        return True

    def _read(self, worker: Worker) -> bool:
        records = self.log.read(worker.partition, worker.position, self.random.randint(1, 12))
        if not records:
            return False
        waves = worker.stage.process(records)
        letters = [Output(self.topics.dead_letters, 0, None, record.value) for record, _ in waves.rejected]
        worker.unsent = [list(wave) for wave in (letters, *waves.waves) if wave]
        worker.position = records[-1].offset + 1
        worker.unsaved = True
        return True

    async def _send_one(self, worker: Worker) -> None:
        """Send the next output of a random partition of the wave, because partitions are acknowledged in any order."""
        wave = worker.unsent[0]
        chosen = self.random.choice(wave)
        first = next(output for output in wave if (output.topic, output.partition) == (chosen.topic, chosen.partition))
        wave.remove(first)
        if not wave:
            worker.unsent.pop(0)
        self.now = 2_000.0
        await self.log.send([first] * (2 if self.random.random() < self.faults.repeat_send else 1))

    def _crash(self, worker: Worker) -> None:
        """Drop the unsent outputs and restart the worker from its checkpoint or without state."""
        self.happened["crash between waves" if worker.unsent else "crash"] += 1
        self.happened["crash while saving"] += worker.save is not None
        worker.close()
        directory: Path | None = worker.directory
        if self.random.random() < self.faults.lose_state:
            self.happened["state lost"] += 1
            shutil.rmtree(worker.directory, ignore_errors=True)
            directory = None
        self.live[worker.place] = self._open(worker.service, worker.partition, directory)

    def _take_over(self, worker: Worker) -> None:
        """Start another worker without local state on the partition. The old worker does not notice yet."""
        self.happened["takeover"] += 1
        self.zombies.append(worker)
        self.live[worker.place] = self._open(worker.service, worker.partition, None)

    async def _zombie_step(self, zombie: Worker) -> None:
        """Let the old worker send an output or process polled records, without a commit, or end it."""
        draw = self.random.random()
        if draw < 0.05 or (not zombie.unsent and draw < 0.5):
            zombie.close()
            self.zombies.remove(zombie)
        elif zombie.unsent:
            self.happened["zombie send"] += 1
            await self._send_one(zombie)
        else:
            self._read(zombie)

    async def _drain(self) -> None:
        self.faults.repeat_send = 0
        for _ in range(MOST_STEPS):
            if self.zombies:
                await self._zombie_step(self.random.choice(self.zombies))
            worked = [await self._work(worker) for worker in self.live.values()]
            if not any(worked) and not self.zombies:
                return
        raise AssertionError(f"expected no work after {MOST_STEPS:,} steps, got some")

    def _open(self, service: str, partition: Partition, directory: Path | None) -> Worker:
        if directory is None:
            self._directories += 1
            directory = self._directory / f"{partition}-{self._directories}"
        stage = self._make_stage(service, self.deployment, partition)
        offset = stage.open(directory)
        if offset is None:
            offset = self.committed.get((service, partition), 0)
        return Worker(service, partition, stage, directory, offset)


def _stage(service: str, deployment: Deployment, partition: Partition) -> Stage:
    return SERVICES[service].make_stage(deployment, partition)


def _settings(draw: random.Random) -> Settings:
    return Settings(
        prefix="sim",
        page_partitions=draw.randint(1, 3),
        owners=draw.randint(1, 3),
        verdict_partitions=1,
        tables=4,
        slice_bits=draw.randint(0, 1),
        bands=draw.choice(["none", "3x4"]),
        # A page beyond the limit of variants is not revised. The simulation must avoid this documented exception.
        variants=1000,
        processes=1,
        corpus_seconds=0.0,
        # Most pages are chosen for a canary, so that the slots of chosen pages fill.
        canary_share=0.6,
        sample_seed=draw.randrange(1000),
    )


def simulate(seed: int, make_stage: Callable[[str, Deployment, Partition], Stage] | None = None) -> Counter[str]:
    """Run one seed and count the events. Raises AssertionError if a guarantee is broken."""
    with tempfile.TemporaryDirectory() as directory:
        simulation = Simulation(seed, Path(directory), make_stage)
        asyncio.run(simulation.run())
        return simulation.happened


def main() -> None:
    parser = argparse.ArgumentParser(description="Simulate the protocol under faults.")
    parser.add_argument("--seeds", type=int, default=200, help="number of seeds (default: 200)")
    parser.add_argument("--first", type=int, default=0, help="first seed (default: 0)")
    options = parser.parse_args()
    happened: Counter[str] = Counter()
    failed = []
    for seed in range(options.first, options.first + options.seeds):
        try:
            happened += simulate(seed)
        except AssertionError as error:
            failed.append(seed)
            print(f"seed {seed}: {error}", flush=True)
        done = seed - options.first + 1
        if sys.stderr.isatty():
            print(f"\r{done} of {options.seeds}", end="", file=sys.stderr, flush=True)
        elif done % LINE_EVERY == 0:
            print(f"{done} of {options.seeds}, {len(failed)} failed", file=sys.stderr, flush=True)
    print(
        f"{options.seeds} seeds, {len(failed)} failed; "
        + ", ".join(f"{n} × {what}" for what, n in happened.most_common())
    )
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
