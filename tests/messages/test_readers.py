"""Every reader of a message: whatever well-formed body comes, nothing but a WireError or WrongPlan is raised."""

import contextlib
from array import array
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.errors import Retired, WireError, WrongPlan
from neardup.messages import dead_letters, wire
from neardup.messages.answers import Answers, read_answers, write_answers
from neardup.messages.fields import require_plan
from neardup.messages.forgotten import forgotten_of, write_forgotten
from neardup.messages.orders import Forget, orders, read_order
from neardup.messages.probes import Probes, read_probes, write_probes
from neardup.messages.questions import (
    Evidence,
    Question,
    read_evidence,
    read_questions,
    write_evidence,
    write_questions,
)
from neardup.messages.registrations import read_registrations, read_skipped, write_skipped
from neardup.messages.seeds import (
    Entry,
    SeedKeys,
    read_seed_entries,
    read_seed_keys,
    stop_at_retired,
    write_retired,
    write_seed_entries,
    write_seed_keys,
)
from neardup.messages.settled import Settled, read_documents, write_documents
from neardup.stream.aggregator.directory import check_entry
from neardup.types import BatchId, DeadLetter, DocumentId, SkippedPage
from tests.support.documents import M, anything, document, no_array, registrations_of, utf8

PLAN = "plan"
PARTITIONS = 3
OWNERS = 2
BATCH = BatchId(0, 0, 1)
WORDS = np.arange(2, dtype=np.uint64)


def planned(read: Callable[[dict[str, Any]], Any], kind: str) -> Callable[[bytes], None]:
    """As an owner reads its inbox."""

    def reader(value: bytes) -> None:
        body = wire.decode(value, kind)
        require_plan(body, PLAN)
        read(body)

    return reader


def retired(value: bytes) -> None:
    with contextlib.suppress(Retired):
        stop_at_retired(wire.decode(value, "retired"), 1)


READERS: dict[str, Callable[[bytes], Any]] = {
    "registrations": planned(lambda body: read_registrations(body, PARTITIONS, M), "registrations"),
    "skipped": lambda value: read_skipped(wire.decode(value, "skipped")),
    "probes": lambda value: read_probes(wire.decode(value, "probes"), PLAN),
    "answers": planned(lambda body: read_answers(body, PARTITIONS), "answers"),
    "questions": planned(lambda body: read_questions(body, OWNERS, M), "questions"),
    "evidence": planned(read_evidence, "evidence"),
    "control": lambda value: read_order(wire.decode(value, "control")),
    "seed-keys": lambda value: read_seed_keys(wire.decode(value, "seed-keys"), PLAN),
    "seed-entries": planned(
        lambda body: read_seed_entries(body, 2, lambda entry: check_entry(entry, M)), "seed-entries"
    ),
    "retired": retired,
    "documents": read_documents,
    "forgotten": lambda value: forgotten_of(wire.decode(value, "forgotten")),
    "dead-letter": dead_letters.decode,
}
GOOD: dict[str, bytes | None] = {
    "registrations": registrations_of([document(0, 1), document(1, 2)])[0],
    "skipped": next(write_skipped([SkippedPage(DocumentId(1, 0, 9), "u", None, "too short")])),
    "probes": write_probes(Probes(BATCH, WORDS, WORDS, np.zeros((2, 64), np.uint8)), PLAN),
    "answers": write_answers(Answers(1, (BATCH,), WORDS, WORDS), PLAN),
    "questions": next(write_questions([Question(document(0, 1), {7: 1, 8: 3})], 0, PLAN)),
    "evidence": next(write_evidence([Evidence(DocumentId(1, 2, 3), 4, (5,), None)], PLAN)),
    "control": orders(Forget("u"), "inbox", 1)[0].value,
    "seed-keys": write_seed_keys(SeedKeys(5, WORDS, WORDS), PLAN),
    "seed-entries": next(write_seed_entries([Entry(b"D" + bytes(32), b"")], 2, PLAN)),
    "retired": write_retired(2),
    "documents": next(write_documents([Settled(document(0, 1), None)], "nd1")),
    "forgotten": next(write_forgotten(array("q", [1, 2, 3]))),
    "dead-letter": dead_letters.encode(DeadLetter("t", 0, 0, 0, None, b"", (("a", b"b"),), "s", "r", "d")),
}

nested = st.recursive(
    anything, lambda inner: st.lists(inner, max_size=7) | st.dictionaries(utf8, inner, max_size=3), max_leaves=12
)


def test_every_kind_has_a_reader_that_reads_what_is_written() -> None:
    assert READERS.keys() == GOOD.keys() == wire.SCHEMAS.keys()
    for kind, read in READERS.items():
        good = GOOD[kind]
        assert good is not None
        read(good)


@pytest.mark.parametrize("kind", READERS)
@given(data=st.data())
def test_whatever_a_body_is_nothing_but_wire_errors_and_wrong_plans_are_raised(kind: str, data: st.DataObject) -> None:
    body = wire.decode(GOOD[kind], kind)
    names = st.sampled_from(sorted(body))
    for name in data.draw(st.sets(names, min_size=1, max_size=3)):
        body[name] = data.draw(nested, label=name)
    for name in data.draw(st.sets(names, max_size=1)):
        del body[name]
    body |= data.draw(st.dictionaries(utf8, no_array, max_size=1))
    with contextlib.suppress(WireError, WrongPlan):
        READERS[kind](wire.encode(kind, body))
