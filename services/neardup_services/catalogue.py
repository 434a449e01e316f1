"""Which services there are: the topic each reads and the stage that it runs."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from neardup.aggregator import Aggregator
from neardup.featurizer import Featurizer
from neardup.log import Log, Partition
from neardup.runner import Runner
from neardup.settings import Settings
from neardup.stage import Stage
from neardup.topics import Topics


@dataclass(frozen=True, slots=True)
class ServiceSpec:
    """A service: what it does in one line, what it reads, and how to make its stage for a partition."""

    about: str
    topic: Callable[[Topics], str]
    make_stage: Callable[[Settings, Topics, Partition], Stage]


def _featurizer(settings: Settings, topics: Topics, partition: Partition) -> Stage:
    return Featurizer(inbox=topics.inbox, owners=settings.owners)


def _aggregator(settings: Settings, topics: Topics, partition: Partition) -> Stage:
    return Aggregator(partition=str(partition), verdicts=topics.verdicts, form=settings.verdict_format, clock=time.time)


SERVICES = {
    "featurizer": ServiceSpec("reads pages, registers documents with their owners", lambda t: t.pages, _featurizer),
    "aggregator": ServiceSpec("owns documents, emits verdicts", lambda t: t.inbox, _aggregator),
}


def make_runner(name: str, settings: Settings, log: Log) -> Runner:
    """The runner of a service over a log."""
    spec = SERVICES[name]
    topics = Topics.under(settings.prefix)
    return Runner(
        log=log,
        topic=spec.topic(topics),
        group=f"{settings.prefix}.{name}",
        make_stage=lambda partition: spec.make_stage(settings, topics, partition),
        settings=settings,
        dead_letter_topic=topics.dead_letters,
    )
