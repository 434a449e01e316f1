"""Featurizer, shards and one owner, called in turn without a log: records of pages in, verdicts out.

The stages are those of every other run. Their outputs are passed on immediately and not stored.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Self

from neardup.deployment.plan import plan_of
from neardup.errors import NeardupError
from neardup.index.psm.search import Psm
from neardup.log import PlainRecord, Record
from neardup.messages.topics import Topics
from neardup.messages.verdicts import read_verdict
from neardup.runtime.stage import Stage, Waves
from neardup.settings import Settings
from neardup.stream.aggregator.stage import Aggregator
from neardup.stream.featurizer.stage import BatchFeaturizer, Featurizer
from neardup.stream.shard.stage import Shard
from neardup.types import Verdict


class InTurn:
    """One owner and every shard partition, in a directory that nothing else uses. Use as a context manager.

    Errors of stages are raised.
    """

    def __init__(
        self, settings: Settings, batch_featurizer: BatchFeaturizer, directory: Path, psm: Psm | None = None
    ) -> None:
        """Create the stages. The settings must have one owner and verdicts in JSON."""
        assert settings.owners == 1
        plan, self._topics = plan_of(settings), Topics.under(settings.prefix, settings.generation)
        self._featurizer = Featurizer(batch_featurizer=batch_featurizer, plan=plan, topics=self._topics, owners=1)
        self._owner = Aggregator(settings=settings, plan=plan, partition=0, identity="replay", clock=lambda: 0.0)
        self._stages: dict[tuple[str, int], Stage] = {(self._topics.inbox, 0): self._owner}
        for number in range(plan.partitions):
            shard = Shard(settings=settings, plan=plan, partition=number, psm=psm)
            self._stages[self._topics.probes, number] = shard
        self._directory = directory
        self._sent = 0

    def __enter__(self) -> Self:
        for (topic, number), stage in self._stages.items():
            stage.open(self._directory / f"{topic}-{number}")
        return self

    def __exit__(self, *error: object) -> None:
        for stage in self._stages.values():
            stage.close()

    def take(self, records: Sequence[Record]) -> list[Verdict]:
        """Process records of pages. Return a verdict per page and any revised verdicts."""
        waves = self._featurizer.process(records)
        verdicts: list[Verdict] = []
        todo = deque(self._records(waves, records[-1].timestamp))
        while todo:
            record = todo.popleft()
            if record.topic == self._topics.verdicts:
                assert record.value is not None
                verdicts.append(read_verdict(record.value))
            elif (stage := self._stages.get((record.topic, record.partition))) is not None:
                caused = stage.process([record])
                for rejection in caused.rejected:
                    raise NeardupError(f"expected stages to accept each other's messages, got: {rejection.error}")
                todo.extend(self._records(caused, record.timestamp))
        if self._owner.pending:
            raise NeardupError(f"expected every page to be settled, got {self._owner.pending} pending")
        return verdicts

    def _records(self, waves: Waves, timestamp: int) -> Iterator[PlainRecord]:
        for output in (each for wave in waves.waves for each in wave):
            yield PlainRecord(
                topic=output.topic,
                partition=output.partition or 0,
                offset=self._sent,
                timestamp=timestamp,
                key=output.key,
                value=output.value,
                headers=output.headers,
            )
            self._sent += 1
