"""Tests that the protocol holds for every seed, and that some seed fails if any one of its rules is removed."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from neardup.log import Record
from neardup.matching.found_by import FoundBy
from neardup.matching.match import Match, better, match
from neardup.runtime.stage import Waves
from neardup.stream.aggregator.keys import DocumentKey
from neardup.stream.aggregator.owner import Outbox, Owner
from neardup.stream.aggregator.pending import PendingDocuments
from neardup.stream.aggregator.stage import Aggregator
from neardup.stream.canary.stage import CanaryStage
from neardup.stream.featurizer.stage import Featurizer
from neardup.stream.shard.stage import Shard
from neardup.types import BatchId, Document, DocumentId, Kind
from tests.simulation.simulate import Simulation, simulate

SEEDS = 200
GROUP = 10


@pytest.mark.parametrize("first", range(0, SEEDS, GROUP))
def test_any_interleaving_crash_and_takeover_ends_in_the_same_verdicts(first: int) -> None:
    happened: Counter[str] = Counter()
    for seed in range(first, first + GROUP):
        happened += simulate(seed)
    # The seeds would prove nothing if no fault occurred.
    wanted = (
        "crash", "crash while saving", "state lost", "takeover", "zombie send", "duplicate", "unique", "canary found",
    )  # fmt: skip
    assert all(happened[each] for each in wanted)


def probes_first(patch: pytest.MonkeyPatch) -> None:
    process = Featurizer.process

    def reversed_waves(self: Featurizer, records: Sequence[Record]) -> Waves:
        made = process(self, records)
        return Waves(list(reversed(made.waves)), made.rejected)

    patch.setattr(Featurizer, "process", reversed_waves)


def newer_batch_supersedes(patch: pytest.MonkeyPatch) -> None:
    add = PendingDocuments.add

    def superseding(self: PendingDocuments, batch: BatchId, expected: Sequence[int], document: DocumentKey) -> None:
        self.remove(document)
        add(self, batch, expected, document)

    patch.setattr(PendingDocuments, "add", superseding)


def pending_not_saved(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PendingDocuments, "flush", lambda self: None)


def order_not_checked(patch: pytest.MonkeyPatch) -> None:
    def compare(
        self: Owner, document: Document, known: Any, found_by: FoundBy, best: Match | None, outbox: Outbox
    ) -> Match | None:
        first, second = sorted((document, known.document), key=lambda each: each.id)
        if first.id == second.id:
            return best
        found = match(second, first, self._thresholds, found_by=found_by)
        return better(best, found and replace(found, id=known.document.id, url=known.document.url))

    patch.setattr(Owner, "_compare", compare)


def fingerprints_not_confirmed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Owner, "_confirm", lambda self, a, b, found_by: found_by)


def no_revisions(patch: pytest.MonkeyPatch) -> None:
    record_match = Owner._record_match

    def only_before_settling(self: Owner, known: Any, found: Match | None, outbox: Outbox) -> None:
        if known.kind is not Kind.UNIQUE:
            record_match(self, known, found, outbox)

    patch.setattr(Owner, "_record_match", only_before_settling)


def early_evidence_dropped(patch: pytest.MonkeyPatch) -> None:
    compare = Owner._compare

    def only_settled(
        self: Owner, document: Document, known: Any, found_by: FoundBy, best: Match | None, outbox: Outbox
    ) -> Match | None:
        if known.document.id > document.id and known.kind is None:
            return best
        return compare(self, document, known, found_by, best, outbox)

    patch.setattr(Owner, "_compare", only_settled)


def registered_again_is_new(patch: pytest.MonkeyPatch) -> None:
    register = Owner.register

    def forgetful(self: Owner, document: Document, batch: BatchId, expected: Sequence[int], outbox: Outbox) -> None:
        known = self.directory.find(document.fingerprint, document.id)
        if known is not None and known.kind is not None:
            self.directory.variants(document.fingerprint).remove(known)
        register(self, document, batch, expected, outbox)

    patch.setattr(Owner, "register", forgetful)


def saved_before_acknowledged(patch: pytest.MonkeyPatch) -> None:
    read = Simulation._read

    def eager(self: Simulation, worker: Any) -> bool:
        worked = read(self, worker)
        if worked:
            self.committed[worker.place] = worker.stage.checkpoint()
        return worked

    patch.setattr(Simulation, "_read", eager)


def owner_written_without_freeze(patch: pytest.MonkeyPatch) -> None:
    freeze = Aggregator.freeze
    patch.setattr(Aggregator, "freeze", lambda self: lambda: freeze(self)())


def offset_of_the_write(patch: pytest.MonkeyPatch) -> None:
    def freeze(self: Shard) -> Callable[[], int]:
        frozen = self._table.freeze(self._next)

        def save() -> int:
            frozen.about["offset"] = self._next
            frozen.write(self._path)
            return self._next

        return save

    patch.setattr(Shard, "freeze", freeze)


def canaries_ordered_among_pages(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        "neardup.stream.featurizer.page_pool.document_id",
        lambda record: DocumentId(record.timestamp, record.partition, record.offset),
    )


def canaries_sent_to_any_partition(patch: pytest.MonkeyPatch) -> None:
    process = CanaryStage.process

    def to_any_partition(self: CanaryStage, records: Sequence[Record]) -> Waves:
        (planted,) = process(self, records).waves
        return Waves([[output._replace(partition=0) for output in planted]])

    patch.setattr(CanaryStage, "process", to_any_partition)


RULES: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "registrations are acknowledged before probes are sent": probes_first,
    "the first complete batch settles a document": newer_batch_supersedes,
    "pending documents are part of the saved state": pending_not_saved,
    "a verdict names only an earlier page": order_not_checked,
    "documents are compared, not only their fingerprints": fingerprints_not_confirmed,
    "evidence after settling revises": no_revisions,
    "evidence before settling is kept": early_evidence_dropped,
    "a document that is registered again is the same document": registered_again_is_new,
    "a canary comes after all pages in the order": canaries_ordered_among_pages,
    "a canary follows its original in the same partition": canaries_sent_to_any_partition,
    "state is saved only after its outputs are acknowledged": saved_before_acknowledged,
    "the saved state of an owner is its state at the freeze": owner_written_without_freeze,
    "a snapshot has the offset that belongs to its content": offset_of_the_write,
}


@pytest.mark.parametrize("rule", RULES)
def test_without_the_rule_some_seed_fails(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    RULES[rule](monkeypatch)
    failed = 0
    for seed in range(SEEDS):
        try:
            simulate(seed)
        except AssertionError:
            failed += 1
            break
    assert failed, f"no seed of {SEEDS} failed without the rule: {rule}"
