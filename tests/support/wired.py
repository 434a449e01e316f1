"""Featurizer, shards and owners connected by direct calls, without a log: pages in, verdicts out."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from neardup.deployment.plan import plan_of
from neardup.log import Output, PlainRecord
from neardup.messages.topics import Topics
from neardup.messages.verdicts import read_verdict
from neardup.runtime.stage import Stage, Waves
from neardup.settings import Settings
from neardup.signatures.signature import SignatureOptions, Signatures
from neardup.stream.aggregator.stage import Aggregator
from neardup.stream.featurizer.page_pool import PagePool
from neardup.stream.featurizer.stage import Featurizer
from neardup.stream.shard.stage import Shard
from neardup.types import Verdict

NOW_SECONDS = 2_000.0


def aggregator(settings: Settings, number: int, directory: Path, now: float = NOW_SECONDS) -> tuple[Aggregator, int]:
    """Open an owner. Return it with the offset from which it reads."""
    stage = Aggregator(
        settings=settings, plan=plan_of(settings), partition=number, identity=f"inbox-{number}", clock=lambda: now
    )
    start = stage.open(directory / f"owner-{number}")
    assert start is not None
    return stage, start


class Wired:
    """One stage per partition. Every message that was sent is kept, by topic and partition."""

    def __init__(self, settings: Settings, directory: Path, page_pool: PagePool | None = None) -> None:
        self.settings, self.plan, self.topics = settings, plan_of(settings), Topics.under(settings.prefix)
        self.sent: defaultdict[tuple[str, int], list[PlainRecord]] = defaultdict(list)
        self.rejected: list[type[Exception]] = []
        self.verdicts: list[Verdict] = []
        self._featurizer = Featurizer(
            batch_featurizer=page_pool or PagePool(Signatures(SignatureOptions.of(settings)), None),
            plan=self.plan,
            topics=self.topics,
            owners=settings.owners,
        )
        self.owners = [aggregator(settings, number, directory)[0] for number in range(settings.owners)]
        self._stages: dict[tuple[str, int], Stage] = {}
        for number, owner in enumerate(self.owners):
            self._stages[self.topics.inbox, number] = owner
        for number in range(self.plan.partitions):
            shard = Shard(settings=settings, plan=self.plan, partition=number)
            shard.open(directory / f"shard-{number}")
            self._stages[self.topics.probes, number] = shard
        self._read: defaultdict[tuple[str, int], int] = defaultdict(int)

    def take(self, pages: Sequence[PlainRecord]) -> list[Verdict]:
        """Process these pages until no stage has unread input. Return the verdicts."""
        self._keep(self._featurizer.process(pages))
        return self.rest()

    def send(self, outputs: Sequence[Output]) -> list[Verdict]:
        """Process messages from elsewhere until no stage has unread input. Return the verdicts."""
        self._keep(Waves([outputs]))
        return self.rest()

    def rest(self) -> list[Verdict]:
        """Let every stage read until no input is left. Return the new verdicts."""
        before = len(self.verdicts)
        while unread := [place for place in self._stages if len(self.sent[place]) > self._read[place]]:
            for place in unread:
                records = self.sent[place][self._read[place] :]
                self._read[place] += len(records)
                self._keep(self._stages[place].process(records))
        return self.verdicts[before:]

    def slice_keys(self) -> list[int]:
        """Return the number of keys in each shard partition."""
        return [len(stage._table) for stage in self._stages.values() if isinstance(stage, Shard)]

    def save(self) -> None:
        """Checkpoint every stage."""
        for stage in self._stages.values():
            stage.checkpoint()

    def close(self) -> None:
        for stage in self._stages.values():
            stage.close()

    def _keep(self, waves: Waves) -> None:
        self.rejected += [type(error) for _, error in waves.rejected]
        for output in (each for wave in waves.waves for each in wave):
            log = self.sent[output.topic, output.partition or 0]
            log.append(
                PlainRecord(output.topic, output.partition or 0, len(log), 5, output.key, output.value, output.headers)
            )
            if output.topic == self.topics.verdicts:
                assert output.value is not None
                verdict = read_verdict(output.value)
                assert output.key == verdict.url.encode()
                self.verdicts.append(verdict)
