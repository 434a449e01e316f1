"""Pending documents against plain sets, with saving and crashes at any point, and their rules by example."""

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
WAITING = [DocumentKey(n % 3, DocumentId(20 - n, 0, n)) for n in range(6)]
EXPECTED = [0, 1, 2]
Complete = list[tuple[DocumentKey, Candidates]]

batches = st.sampled_from(BATCHES)
documents = st.sampled_from(WAITING)
partitions = st.sampled_from(EXPECTED)
pairs = st.lists(st.tuples(st.sampled_from([0, 1, 2, 99]), st.sampled_from([7, 8, 2**64 - 1])), max_size=3)


def answers(partition: int, done: Sequence[BatchId], near: Sequence[tuple[int, int]] = ()) -> Answers:
    return Answers(partition, tuple(done), words([query for query, _ in near]), words([found for _, found in near]))


@dataclass
class Model:
    """Who waits in which batch, what is missing, what was found and what was asked."""

    waits: set[tuple[BatchId, DocumentKey]] = field(default_factory=set)
    missing: dict[BatchId, set[int]] = field(default_factory=dict)
    near: dict[int, Candidates] = field(default_factory=dict)
    asked: dict[DocumentKey, set[int]] = field(default_factory=dict)

    def waiting(self) -> set[DocumentKey]:
        return {waiting for _, waiting in self.waits}

    def add(self, batch: BatchId, waiting: DocumentKey) -> None:
        if waiting not in self.asked:
            self.waits.add((batch, waiting))
            self.missing.setdefault(batch, set(EXPECTED))

    def leave(self, waiting: DocumentKey) -> None:
        self.waits = {(batch, each) for batch, each in self.waits if each != waiting}
        self.asked.pop(waiting, None)
        self.tidy()

    def tidy(self) -> None:
        """Nothing is kept of a batch or a fingerprint that nobody waits with."""
        held = {batch for batch, _ in self.waits}
        self.missing = {batch: missing for batch, missing in self.missing.items() if batch in held}
        fingerprints = {waiting.fingerprint for waiting in self.waiting()}
        self.near = {fingerprint: near for fingerprint, near in self.near.items() if fingerprint in fingerprints}

    def answered(
        self, partition: int, done: Sequence[BatchId], near: Sequence[tuple[int, int]], bit: FoundBy
    ) -> Complete:
        for query, found in near:
            if query in {waiting.fingerprint for waiting in self.waiting()}:
                masks = self.near.setdefault(query, {})
                masks[found] = FoundBy(masks.get(found, NO_TABLE) | bit)
        complete: Complete = []
        for batch in done:
            if batch not in self.missing:
                continue
            self.missing[batch].discard(partition)
            if not self.missing[batch]:
                ready = sorted((each for held, each in self.waits if held == batch), key=lambda each: each.document)
                complete += [(each, dict(self.near.get(each.fingerprint, {}))) for each in ready]
                for each in ready:
                    self.leave(each)
        return complete


class PendingMachine(RuleBasedStateMachine):
    """Every rule does the same to the pending and to the model."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr("neardup.stream.aggregator.candidates.IN_MEMORY", 2)  # of the few that there are
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

    @rule(batch=batches, waiting=documents)
    def add(self, batch: BatchId, waiting: DocumentKey) -> None:
        self.pending.add(batch, EXPECTED, waiting)
        self.model.add(batch, waiting)

    @rule(partition=partitions, done=st.lists(batches, max_size=2), near=pairs, table=st.sampled_from([0, 1, 70]))
    def answer(self, partition: int, done: list[BatchId], near: list[tuple[int, int]], table: int) -> None:
        complete = self.pending.on_answers(answers(partition, done, near), table)
        assert complete == self.model.answered(partition, done, near, found_by_table(table))

    @rule(done=batches, ask=st.booleans())
    def answer_by_all(self, done: BatchId, ask: bool) -> None:
        for partition in EXPECTED:
            complete = self.pending.on_answers(answers(partition, [done], [(0, 7), (1, 8)]), partition)
            assert complete == self.model.answered(partition, [done], [(0, 7), (1, 8)], found_by_table(partition))
            for waiting, near in complete:
                if ask and near:
                    self.pending.await_evidence(waiting, near)
                    self.model.asked[waiting] = set(near)

    @rule(waiting=documents, candidates=st.sets(st.sampled_from([7, 8, 9])))
    def hear(self, waiting: DocumentKey, candidates: set[int]) -> None:
        asked = self.model.asked.get(waiting)
        last = asked is not None and not asked - candidates
        assert self.pending.on_evidence(waiting, candidates) == last
        if asked is not None:
            asked -= candidates
        if last:
            del self.model.asked[waiting]

    @rule(waiting=documents)
    def leave(self, waiting: DocumentKey) -> None:
        self.pending.remove(waiting)
        self.model.leave(waiting)

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
    def the_same_documents_wait(self) -> None:
        everyone = [*self.model.waiting(), *self.model.asked]
        assert len(self.pending) == len(everyone)
        assert self.pending.batches == len(self.model.missing)
        # Which of them came first is not remembered over a restart.
        oldest = self.pending.oldest_timestamp()
        assert oldest in [each.document.timestamp for each in everyone] if everyone else oldest is None


def test_the_page_that_came_to_wait_first_waits_longest(tmp_path: Path) -> None:
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
        pending.add(early, [0, 1], WAITING[0])
        pending.add(late, [0], WAITING[0])
        pending.add(early, [0, 1], WAITING[1])
        assert pending.on_answers(answers(0, [early]), 0) == []
        assert pending.on_answers(answers(0, [late]), 0) == [(WAITING[0], {})]
        assert pending.batches == 1
        assert pending.on_answers(answers(1, [early]), 0) == [(WAITING[1], {})]
        assert len(pending) == pending.batches == 0


def test_what_several_tables_found_is_handed_over_with_all_of_them(tmp_path: Path) -> None:
    with closing(Store(tmp_path, "p")) as store:
        pending = PendingDocuments(store)
        pending.add(BATCHES[0], [0, 1], WAITING[0])
        fingerprint = WAITING[0].fingerprint
        pending.on_answers(answers(0, [BATCHES[0]], [(fingerprint, 7), (fingerprint, 8)]), 3)
        complete = pending.on_answers(answers(1, [BATCHES[0]], [(fingerprint, 7)]), 70)
        assert complete == [(WAITING[0], {7: 1 << 3 | 1 << 70, 8: 1 << 3})]


def test_a_document_that_asks_is_not_made_to_wait_again(tmp_path: Path) -> None:
    with closing(Store(tmp_path, "p")) as store:
        pending = PendingDocuments(store)
        pending.await_evidence(WAITING[0], [7])
        pending.add(BATCHES[0], [0], WAITING[0])
        assert pending.on_answers(answers(0, [BATCHES[0]]), 0) == []
        assert pending.on_evidence(WAITING[0], [7])
        assert not pending.on_evidence(WAITING[0], [7])


def test_nothing_is_left_in_the_store_when_nobody_waits(tmp_path: Path) -> None:
    with closing(Store(tmp_path, "p")) as store:
        pending = PendingDocuments(store)
        pending.add(BATCHES[0], [0, 1], WAITING[0])
        pending.on_answers(answers(0, [BATCHES[0]], [(WAITING[0].fingerprint, 7)]), 0)
        pending.await_evidence(WAITING[1], [7])
        pending.flush()
        store.save(1)
        assert pending.on_answers(answers(1, [BATCHES[0]]), 1) == [(WAITING[0], {7: 1})]
        pending.remove(WAITING[1])
        pending.flush()
        store.save(2)
        assert [list(store.scan(prefix)) for prefix in (b"J", b"N", b"Q")] == [[], [], []]


def test_what_comes_and_goes_between_two_saves_leaves_no_trace(tmp_path: Path) -> None:
    with closing(Store(tmp_path, "p")) as store:
        pending = PendingDocuments(store)
        pending.add(BATCHES[0], [0], WAITING[0])
        pending.on_answers(answers(0, [BATCHES[0]]), 0)
        pending.await_evidence(WAITING[0], [7])
        assert pending.on_evidence(WAITING[0], [7])
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(store, "delete", lambda key: pytest.fail(f"{key!r} was never there"))
            pending.flush()


def test_what_came_after_one_save_is_there_after_the_next(tmp_path: Path) -> None:
    def save() -> None:
        pending.flush()
        store.save(1)

    with closing(Store(tmp_path, "p")) as store:
        pending = PendingDocuments(store)
        pending.add(BATCHES[0], [0, 1], WAITING[0])
        pending.await_evidence(WAITING[1], [7, 8])
        save()
        pending.on_answers(answers(0, [BATCHES[0]]), 0)
        pending.on_evidence(WAITING[1], [7])
        save()
    with closing(Store(tmp_path, "p")) as store:
        pending = PendingDocuments(store)
        assert pending.on_answers(answers(1, [BATCHES[0]]), 0) == [(WAITING[0], {})]
        assert pending.on_evidence(WAITING[1], [8])
