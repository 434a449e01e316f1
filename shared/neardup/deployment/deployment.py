"""A deployment: what its settings make, which services there are, the topic each reads and the stage that it runs."""

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
"""Of a service whose outputs nobody waits for: few large fetches leave the time to those that are waited for."""
FEATURIZING_PROCESSES: Final = 2
"""Of a worker on Kafka, which shares its machine with others and leaves its own threads to the broker's messages."""


@dataclass(frozen=True)
class Deployment:
    """What the settings make of a deployment, worked out once. Raises SettingsError where they do not fit together."""

    settings: Settings

    @cached_property
    def plan(self) -> Plan:
        """Which tables there are."""
        return plan_of(self.settings)

    @cached_property
    def topics(self) -> Topics:
        """What they are called."""
        return Topics.under(self.settings.prefix, self.settings.generation)

    @cached_property
    def signatures(self) -> Signatures:
        """What the stream needs of them."""
        return Signatures(SignatureOptions.of(self.settings), everything=False)

    @cached_property
    def page_pool(self) -> PagePool:
        """The pool of processes that featurize pages, shared by all featurizer stages of this process."""
        model = None if self.psm is None else self.psm.model
        return PagePool(self.signatures, model, self.settings.processes or FEATURIZING_PROCESSES)

    @cached_property
    def psm(self) -> Psm | None:
        """The probabilistic search, where it is chosen."""
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
    """Where the corpus of a deployment is."""
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
    """A service: what it does in one line, what it reads, and how to make its stage for a partition.

    `patience`: seconds for which records may be held back so that more of them come at once. Without a service that
    `is_needed` there are no verdicts, or nothing comes of them.
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
        # A batch of pages, however few, is asked of every table and answered by every one: some dozens of messages.
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
        "plants near-copies of pages, to see whether they are found",
        lambda t: t.pages,
        _canary,
        patience=_NO_HURRY_SECONDS,
        is_needed=False,
    ),
}


def group_of(name: str, settings: Settings) -> str:
    """The group of a service's workers. Each generation has its own: one of an old one takes nothing from the new."""
    generation = 0 if name == "recluster" else settings.generation
    return f"{prefix_of_generation(settings.prefix, generation)}.{name}"


def _announce(name: str, plan: Plan) -> None:
    """Counters that alerts watch begin at 0: Prometheus sees no increase in one that is first seen above it."""
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
    """The runner of a service over a log; services of one process may share what the settings make."""
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
