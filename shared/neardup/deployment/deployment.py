"""A deployment: the components derived from its settings, and the services with their topics and stages."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Final

from neardup import metrics
from neardup.deployment.plan import plan_of
from neardup.errors import record_reasons
from neardup.index.plan.plan import Plan
from neardup.index.psm.flip_model import FlipModel, simulated_model
from neardup.index.psm.search import Psm
from neardup.log import Log, Partition
from neardup.matching.rule import Thresholds
from neardup.messages.topics import Topics, prefix_of_generation
from neardup.monitoring.host_watch import HostWatch
from neardup.monitoring.near_copy import NearCopies
from neardup.monitoring.recall import Recall
from neardup.monitoring.shadow_sample import Shadow
from neardup.offline.corpus.archive import Archive
from neardup.offline.corpus.corpus import Corpus
from neardup.runtime.runner import Runner
from neardup.runtime.stage import Stage
from neardup.settings import Settings
from neardup.signatures.signature import SignatureOptions, Signatures
from neardup.stream.aggregator.stage import Aggregator
from neardup.stream.canary.stage import CanaryStage
from neardup.stream.featurizer.page_pool import PagePool
from neardup.stream.featurizer.stage import Featurizer
from neardup.stream.shard.stage import Shard

_LARGEST_CANARY: Final = 1 << 20
_NO_HURRY_SECONDS: Final = 0.25
"""Patience of services that do not delay verdicts: a few large fetches leave more CPU time to the other services."""
FEATURIZING_PROCESSES: Final = 2
"""Default number of processes of a worker on Kafka, which shares the machine and needs its own threads for I/O."""


@dataclass(frozen=True)
class Deployment:
    """Components derived from the settings and cached. Raises SettingsError if the settings contradict each other."""

    settings: Settings

    @cached_property
    def plan(self) -> Plan:
        """The plan of the tables."""
        return plan_of(self.settings)

    @cached_property
    def topics(self) -> Topics:
        """The names of the topics."""
        return Topics.under(self.settings.prefix, self.settings.generation)

    @cached_property
    def signatures(self) -> Signatures:
        """The signatures that the stream needs."""
        return Signatures(SignatureOptions.of(self.settings), everything=False)

    @cached_property
    def page_pool(self) -> PagePool:
        """The pool of processes that featurize pages, shared by all featurizer stages of this process."""
        model = None if self.psm is None else self.psm.model
        return PagePool(self.signatures, model, self.settings.processes or FEATURIZING_PROCESSES)

    @cached_property
    def psm(self) -> Psm | None:
        """The probabilistic search, or None if the settings choose exact search."""
        settings = self.settings
        if settings.search != "probabilistic":
            return None
        model = FlipModel.load(Path(settings.flip_model)) if settings.flip_model else simulated_model()
        return Psm(model, settings.header_bits, settings.flips, settings.hamming, settings.most_matches)


def _featurizer(deployment: Deployment, partition: Partition) -> Stage:
    return Featurizer(
        batch_featurizer=deployment.page_pool,
        plan=deployment.plan,
        topics=deployment.topics,
        owners=deployment.settings.owners,
    )


def _shard(deployment: Deployment, partition: Partition) -> Stage:
    return Shard(settings=deployment.settings, plan=deployment.plan, partition=partition.partition, psm=deployment.psm)


def _aggregator(deployment: Deployment, partition: Partition) -> Stage:
    return Aggregator(
        settings=deployment.settings,
        plan=deployment.plan,
        partition=partition.partition,
        identity=str(partition),
        clock=time.time,
    )


def corpus_address(settings: Settings) -> str:
    """Return the address of the corpus of a deployment."""
    return settings.corpus or str(settings.state / "corpus")


def _recluster(deployment: Deployment, partition: Partition) -> Stage:
    settings, number = deployment.settings, partition.partition
    shadow = Shadow(
        Thresholds.of(settings),
        Recall("shadow", number),
        share=settings.shadow_share,
        documents=settings.shadow_documents,
        seed=settings.sample_seed,
    )
    return Archive(
        Corpus(corpus_address(settings)),
        partition=number,
        signature_version=deployment.plan.signature_version,
        longest_seconds=settings.corpus_seconds,
        clock=time.time,
        watches=(shadow, HostWatch(number, least_pages=settings.host_pages)),
    )


def _canary(deployment: Deployment, partition: Partition) -> Stage:
    settings = deployment.settings
    return CanaryStage(
        NearCopies(deployment.signatures, Thresholds.of(settings)),
        topic=deployment.topics.pages,
        share=settings.canary_share,
        seed=settings.sample_seed,
        most_bytes=min(_LARGEST_CANARY, settings.max_message_bytes // 4),
    )


@dataclass(frozen=True, slots=True)
class ServiceSpec:
    """A service: a summary of one line, the topic that it reads, and the factory of its stages.

    `patience` is the maximum time in seconds for which the broker may delay records to return more of them together.
    `is_needed` is true for services without which there are no verdicts or no clusters.
    """

    about: str
    topic: Callable[[Topics], str]
    make_stage: Callable[[Deployment, Partition], Stage]
    patience: float = 0.0
    is_needed: bool = True


SERVICES = {
    "featurizer": ServiceSpec(
        "reads pages, registers documents, probes the tables",
        lambda t: t.pages,
        _featurizer,
        # A batch causes a probe and an answer per table, some dozens of messages, however few pages it has.
        patience=0.06,
    ),
    "shard": ServiceSpec("holds slices of the fingerprint tables, answers probes", lambda t: t.probes, _shard),
    "aggregator": ServiceSpec("owns documents, emits verdicts", lambda t: t.inbox, _aggregator),
    "recluster": ServiceSpec(
        "keeps the corpus, groups its documents into clusters",
        lambda t: t.documents,
        _recluster,
        patience=_NO_HURRY_SECONDS,
    ),
    "canary": ServiceSpec(
        "plants near-copies of pages to measure recall",
        lambda t: t.pages,
        _canary,
        patience=_NO_HURRY_SECONDS,
        is_needed=False,
    ),
}


def group_of(name: str, settings: Settings) -> str:
    """Return the consumer group of a service. Workers of different generations are in different groups."""
    generation = 0 if name == "recluster" else settings.generation
    return f"{prefix_of_generation(settings.prefix, generation)}.{name}"


def _announce(name: str, plan: Plan) -> None:
    """Create the counters that alerts use with value 0: Prometheus misses the first increase of a new counter."""
    metrics.BUILD_INFO.labels(version("neardup"), plan.signature_version, plan.digest).set(1)
    for reason in record_reasons():
        metrics.DEAD_LETTERS.labels(name, reason)
    source = {"aggregator": "canary", "recluster": "shadow"}.get(name)
    if source is not None:
        for result in metrics.RECALL_RESULTS:
            metrics.RECALL_CHECKS.labels(source, result)
    if name == "recluster":
        for result in metrics.PASS_RESULTS:
            metrics.PASSES.labels(result)


def make_runner(name: str, settings: Settings, log: Log, deployment: Deployment | None = None) -> Runner:
    """Return the runner of a service on a log. Services in one process may share a deployment."""
    spec = SERVICES[name]
    deployment = deployment or Deployment(settings)
    _announce(name, deployment.plan)
    return Runner(
        log=log,
        topic=spec.topic(deployment.topics),
        group=group_of(name, settings),
        make_stage=lambda partition: spec.make_stage(deployment, partition),
        settings=settings,
        dead_letter_topic=deployment.topics.dead_letters,
        patience=spec.patience,
    )
