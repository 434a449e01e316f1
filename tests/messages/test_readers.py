"""Tests that every reader of a message raises only WireError or WrongPlan for any well-formed body."""

import contextlib
from array import array
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.errors import Retired, WireError, WrongPlan
from neardup.matching.found_by import FoundBy
from neardup.messages import dead_letters
from neardup.messages.answers import Answers, write_answers
from neardup.messages.forgotten import forgotten_of, write_forgotten
from neardup.messages.formats import MessageContext
from neardup.messages.orders import Forget, orders
from neardup.messages.probes import Probes, write_probes
from neardup.messages.questions import Evidence, Question, write_evidence, write_questions
from neardup.messages.registrations import write_skipped
from neardup.messages.registry import INBOX, PROBES_TOPIC
from neardup.messages.seeds import (
    Entry,
    SeedEntries,
    SeedKeys,
    write_retired,
    write_seed_entries,
    write_seed_keys,
)
from neardup.messages.settled import Settled, write_documents
from neardup.stream.aggregator.directory import check_seed
from neardup.types import BatchId, DeadLetter, DocumentId, SkippedPage
from tests.support.documents import M, anything, document, no_array, read_documents, registrations_of, utf8
from tests.support.messages import SCHEMAS, decode, encode

PLAN = "plan"
PARTITIONS = 3
OWNERS = 2
BATCH = BatchId(0, 0, 1)
WORDS = np.arange(2, dtype=np.uint64)


CONTEXT = MessageContext(plan=PLAN, generation=1, partitions=PARTITIONS, owners=OWNERS, mips=M)


def inbox(value: bytes) -> None:
    """Read a message with the registry of an owner's inbox."""
    with contextlib.suppress(Retired):
        message = INBOX.read(value, CONTEXT)
        if isinstance(message, SeedEntries):
            check_seed(message, M)


def probes(value: bytes) -> None:
    """Read a message with the registry of a shard partition."""
    with contextlib.suppress(Retired):
        PROBES_TOPIC.read(value, CONTEXT)


READERS: dict[str, Callable[[bytes], Any]] = {
    "registrations": inbox,
    "skipped": inbox,
    "probes": probes,
    "answers": inbox,
    "questions": inbox,
    "evidence": inbox,
    "control": inbox,
    "seed-keys": probes,
    "seed-entries": inbox,
    "retired": inbox,
    "documents": read_documents,
    "forgotten": lambda value: forgotten_of(decode(value, "forgotten")),
    "dead-letter": dead_letters.decode,
}
GOOD: dict[str, bytes | None] = {
    "registrations": registrations_of([document(0, 1), document(1, 2)])[0],
    "skipped": next(write_skipped([SkippedPage(DocumentId(1, 0, 9), "u", None, "too short")])),
    "probes": write_probes(Probes(BATCH, WORDS, WORDS, np.zeros((2, 64), np.uint8)), PLAN),
    "answers": write_answers(Answers(1, (BATCH,), WORDS, WORDS), PLAN),
    "questions": next(write_questions([Question(document(0, 1), {7: FoundBy(1), 8: FoundBy(3)})], 0, PLAN)),
    "evidence": next(write_evidence([Evidence(DocumentId(1, 2, 3), 4, (5,), None)], PLAN)),
    "control": orders(Forget("u"), "inbox", 1)[0].value,
    "seed-keys": write_seed_keys(SeedKeys(5, WORDS, WORDS), PLAN),
    "seed-entries": next(write_seed_entries([Entry(b"D" + bytes(32), b"")], 2, PLAN)),
    "retired": write_retired(2),
    "documents": next(write_documents([Settled(document(0, 1), None)], "nd1")),
    "forgotten": next(write_forgotten(array("q", [1, 2, 3]))),
    "dead-letter": dead_letters.encode(
        DeadLetter(
            topic="t",
            partition=0,
            offset=0,
            timestamp=0,
            key=None,
            value=b"",
            headers=(("a", b"b"),),
            stage="s",
            reason="r",
            detail="d",
        )
    ),
}

nested = st.recursive(
    anything, lambda inner: st.lists(inner, max_size=7) | st.dictionaries(utf8, inner, max_size=3), max_leaves=12
)


def test_every_kind_that_is_written_has_a_reader() -> None:
    assert READERS.keys() == GOOD.keys() == SCHEMAS.keys()
    for kind, read in READERS.items():
        good = GOOD[kind]
        assert good is not None
        read(good)


@pytest.mark.parametrize("kind", READERS)
@given(data=st.data())
def test_any_body_raises_only_wire_errors_and_wrong_plan(kind: str, data: st.DataObject) -> None:
    body = decode(GOOD[kind], kind)
    names = st.sampled_from(sorted(body))
    for name in data.draw(st.sets(names, min_size=1, max_size=3)):
        body[name] = data.draw(nested, label=name)
    for name in data.draw(st.sets(names, max_size=1)):
        del body[name]
    body |= data.draw(st.dictionaries(utf8, no_array, max_size=1))
    with contextlib.suppress(WireError, WrongPlan):
        READERS[kind](encode(kind, body))
