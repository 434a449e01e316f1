"""Tests of pending documents against plain sets, with saving and crashes at any point, and by example."""

import tempfile
from collections.abc import Sequence
from contextlib import closing
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from neardup.matching.found_by import NO_TABLE, Candidates, FoundBy, found_by_table
from neardup.messages.answers import Answers
from neardup.stream.aggregator.keys import DocumentKey
from neardup.stream.aggregator.pending import PendingDocuments
from neardup.stream.aggregator.store import Store
from neardup.types import BatchId, DocumentId
from tests.support.fingerprints import words

BATCHES = [BatchId(0, 0, 4), BatchId(0, 5, 9), BatchId(0, 3, 7), BatchId(1, 0, 4)]
KEYS = [DocumentKey(n % 3, DocumentId(20 - n, 0, n)) for n in range(6)]
EXPECTED = [0, 1, 2]
Complete = list[tuple[DocumentKey, Candidates]]

batches = st.sampled_from(BATCHES)
documents = st.sampled_from(KEYS)
partitions = st.sampled_from(EXPECTED)
pairs = st.lists(st.tuples(st.sampled_from([0, 1, 2, 99]), st.sampled_from([7, 8, 2**64 - 1])), max_size=3)


def answers(partition: int, done: Sequence[BatchId], pairs: Sequence[tuple[int, int]] = ()) -> Answers:
    return Answers(partition, tuple(done), words([query for query, _ in pairs]), words([found for _, found in pairs]))


@dataclass
class Model:
    """Pending documents per batch, missing answers, found candidates, and candidates with evidence outstanding."""

    waits: set[tuple[BatchId, DocumentKey]] = field(default_factory=set)
    missing: dict[BatchId, set[int]] = field(default_factory=dict)
    candidates: dict[int, Candidates] = field(default_factory=dict)
    asked: dict[DocumentKey, set[int]] = field(default_factory=dict)

    def pending_keys(self) -> set[DocumentKey]:
        return {key for _, key in self.waits}

    def add(self, batch: BatchId, key: DocumentKey) -> None:
        if key not in self.asked:
            self.waits.add((batch, key))
            self.missing.setdefault(batch, set(EXPECTED))

    def remove(self, key: DocumentKey) -> None:
        self.waits = {(batch, each) for batch, each in self.waits if each != key}
        self.asked.pop(key, None)
        self.tidy()

    def tidy(self) -> None:
        """Remove batches and fingerprints without pending documents."""
        held = {batch for batch, _ in self.waits}
        self.missing = {batch: missing for batch, missing in self.missing.items() if batch in held}
        fingerprints = {key.fingerprint for key in self.pending_keys()}
        self.candidates = {
            fingerprint: matches for fingerprint, matches in self.candidates.items() if fingerprint in fingerprints
        }

    def on_answers(
        self, partition: int, done: Sequence[BatchId], matches: Sequence[tuple[int, int]], bit: FoundBy
    ) -> Complete:
        for query, found in matches:
            if query in {key.fingerprint for key in self.pending_keys()}:
                masks = self.candidates.setdefault(query, {})
                masks[found] = FoundBy(masks.get(found, NO_TABLE) | bit)
        complete: Complete = []
        for batch in done:
            if batch not in self.missing:
                continue
            self.missing[batch].discard(partition)
            if not self.missing[batch]:
                ready = sorted((each for held, each in self.waits if held == batch), key=lambda each: each.document)
                complete += [(each, dict(self.candidates.get(each.fingerprint, {}))) for each in ready]
                for each in ready:
                    self.remove(each)
        return complete


class PendingMachine(RuleBasedStateMachine):
    """A state machine whose rules do the same to the pending documents and to the model."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr("neardup.stream.aggregator.candidates.IN_MEMORY", 2)  # fewer than the test creates
        self.temporary = tempfile.TemporaryDirectory()
        self.model, self.saved = Model(), Model()
        self.open()

    def open(self) -> None:
        self.store = Store(Path(self.temporary.name), "p")
        self.pending = PendingDocuments(self.store)

    def teardown(self) -> None:
        self.patch.undo()
        self.store.close()
        self.temporary.cleanup()

    @rule(batch=batches, key=documents)
    def add(self, batch: BatchId, key: DocumentKey) -> None:
        self.pending.add(batch, EXPECTED, key)
        self.model.add(batch, key)

    @rule(partition=partitions, done=st.lists(batches, max_size=2), matches=pairs, table=st.sampled_from([0, 1, 70]))
    def answer(self, partition: int, done: list[BatchId], matches: list[tuple[int, int]], table: int) -> None:
        complete = self.pending.on_answers(answers(partition, done, matches), table)
        assert complete == self.model.on_answers(partition, done, matches, found_by_table(table))

    @rule(done=batches, ask=st.booleans())
    def answer_by_all(self, done: BatchId, ask: bool) -> None:
        for partition in EXPECTED:
            complete = self.pending.on_answers(answers(partition, [done], [(0, 7), (1, 8)]), partition)
            assert complete == self.model.on_answers(partition, [done], [(0, 7), (1, 8)], found_by_table(partition))
            for key, matches in complete:
                if ask and matches:
                    self.pending.await_evidence(key, matches)
                    self.model.asked[key] = set(matches)

    @rule(key=documents, candidates=st.sets(st.sampled_from([7, 8, 9])))
    def receive_evidence(self, key: DocumentKey, candidates: set[int]) -> None:
        asked = self.model.asked.get(key)
        last = asked is not None and not asked - candidates
        assert self.pending.on_evidence(key, candidates) == last
        if asked is not None:
            asked -= candidates
        if last:
            del self.model.asked[key]

    @rule(key=documents)
    def remove(self, key: DocumentKey) -> None:
        self.pending.remove(key)
        self.model.remove(key)

    @rule(reopened=st.booleans())
    def save(self, reopened: bool) -> None:
        self.pending.flush()
        self.store.save(1)
        self.saved = deepcopy(self.model)
        if reopened:
            self.crash()

    @rule()
    def crash(self) -> None:
        self.store.close()
        self.model = deepcopy(self.saved)
        self.open()

    @invariant()
    def the_same_documents_are_pending(self) -> None:
        everyone = [*self.model.pending_keys(), *self.model.asked]
        assert len(self.pending) == len(everyone)
        assert self.pending.batches == len(self.model.missing)
        # The order of arrival does not survive a restart.
        oldest = self.pending.oldest_timestamp()
        assert oldest in [each.document.timestamp for each in everyone] if everyone else oldest is None


def test_the_oldest_pending_page_is_the_one_that_arrived_first(tmp_path: Path) -> None:
    with closing(Store(tmp_path, "inbox-0")) as store:
        pending = PendingDocuments(store)
        for timestamp in (30, 10, 20):
            pending.add(
                BatchId(0, timestamp, timestamp), [0], DocumentKey(timestamp, DocumentId(timestamp, 0, timestamp))
            )
        assert pending.oldest_timestamp() == 30


TestPending = PendingMachine.TestCase
TestPending.settings = settings(max_examples=25, stateful_step_count=40, deadline=None)


def test_a_document_in_two_batches_is_settled_by_the_first_complete_one(tmp_path: Path) -> None:
    with closing(Store(tmp_path, "p")) as store:
        pending = PendingDocuments(store)
        early, late = BATCHES[:2]
        pending.add(early, [0, 1], KEYS[0])
        pending.add(late, [0], KEYS[0])
        pending.add(early, [0, 1], KEYS[1])
        assert pending.on_answers(answers(0, [early]), 0) == []
        assert pending.on_answers(answers(0, [late]), 0) == [(KEYS[0], {})]
        assert pending.batches == 1
        assert pending.on_answers(answers(1, [early]), 0) == [(KEYS[1], {})]
        assert len(pending) == pending.batches == 0


def test_a_candidate_is_returned_with_all_tables_that_found_it(tmp_path: Path) -> None:
    with closing(Store(tmp_path, "p")) as store:
        pending = PendingDocuments(store)
        pending.add(BATCHES[0], [0, 1], KEYS[0])
        fingerprint = KEYS[0].fingerprint
        pending.on_answers(answers(0, [BATCHES[0]], [(fingerprint, 7), (fingerprint, 8)]), 3)
        complete = pending.on_answers(answers(1, [BATCHES[0]], [(fingerprint, 7)]), 70)
        assert complete == [(KEYS[0], {7: 1 << 3 | 1 << 70, 8: 1 << 3})]


def test_a_document_that_waits_for_evidence_does_not_wait_for_answers_again(tmp_path: Path) -> None:
    with closing(Store(tmp_path, "p")) as store:
        pending = PendingDocuments(store)
        pending.await_evidence(KEYS[0], [7])
        pending.add(BATCHES[0], [0], KEYS[0])
        assert pending.on_answers(answers(0, [BATCHES[0]]), 0) == []
        assert pending.on_evidence(KEYS[0], [7])
        assert not pending.on_evidence(KEYS[0], [7])


def test_the_store_is_empty_without_pending_documents(tmp_path: Path) -> None:
    with closing(Store(tmp_path, "p")) as store:
        pending = PendingDocuments(store)
        pending.add(BATCHES[0], [0, 1], KEYS[0])
        pending.on_answers(answers(0, [BATCHES[0]], [(KEYS[0].fingerprint, 7)]), 0)
        pending.await_evidence(KEYS[1], [7])
        pending.flush()
        store.save(1)
        assert pending.on_answers(answers(1, [BATCHES[0]]), 1) == [(KEYS[0], {7: 1})]
        pending.remove(KEYS[1])
        pending.flush()
        store.save(2)
        assert [list(store.scan(prefix)) for prefix in (b"J", b"N", b"Q")] == [[], [], []]


def test_a_document_that_settles_between_two_saves_is_never_written(tmp_path: Path) -> None:
    with closing(Store(tmp_path, "p")) as store:
        pending = PendingDocuments(store)
        pending.add(BATCHES[0], [0], KEYS[0])
        pending.on_answers(answers(0, [BATCHES[0]]), 0)
        pending.await_evidence(KEYS[0], [7])
        assert pending.on_evidence(KEYS[0], [7])
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(store, "delete", lambda key: pytest.fail(f"{key!r} was never there"))
            pending.flush()


def test_changes_after_one_save_are_part_of_the_next(tmp_path: Path) -> None:
    def save() -> None:
        pending.flush()
        store.save(1)

    with closing(Store(tmp_path, "p")) as store:
        pending = PendingDocuments(store)
        pending.add(BATCHES[0], [0, 1], KEYS[0])
        pending.await_evidence(KEYS[1], [7, 8])
        save()
        pending.on_answers(answers(0, [BATCHES[0]]), 0)
        pending.on_evidence(KEYS[1], [7])
        save()
    with closing(Store(tmp_path, "p")) as store:
        pending = PendingDocuments(store)
        assert pending.on_answers(answers(1, [BATCHES[0]]), 0) == [(KEYS[0], {})]
        assert pending.on_evidence(KEYS[1], [8])
