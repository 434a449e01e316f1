"""Tests that messages which services write have far fewer items than a reader refuses."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest

from neardup.errors import SettingsError
from neardup.kernels.wire.msgpack_items import announced_items
from neardup.matching.found_by import NO_TABLE
from neardup.matching.match import Match
from neardup.messages import wire
from neardup.messages.questions import Evidence, Question, write_evidence, write_questions
from neardup.messages.registrations import write_skipped
from neardup.messages.seeds import Entry, write_seed_entries
from neardup.messages.settled import Settled, write_documents
from neardup.settings import Settings
from neardup.types import DocumentId, Relation, SkippedPage
from tests.support.documents import document
from tests.support.messages import decode

MOST_CANDIDATES = 100_000
PLACE = DocumentId(1, 2, 3)
# The smaller a row is, the more rows fit into a message.
LIGHT = replace(document(0, 1, url=""), sketch=np.empty(0, np.uint64))
MATCH = Match(
    id=PLACE,
    url="",
    relation=Relation.IDENTICAL,
    hamming=0,
    resemblance=1.0,
    containment=None,
    found_by=NO_TABLE,
    group=PLACE,
    group_url="",
)
MANY = 40_000

LARGEST: dict[str, Callable[[], Iterator[bytes]]] = {
    "questions": lambda: write_questions(
        [Question(LIGHT, {})] * 4_000 + [Question(LIGHT, dict.fromkeys(range(MOST_CANDIDATES), NO_TABLE))], 0, "plan"
    ),
    "evidence": lambda: write_evidence([Evidence(PLACE, 4, (5,), MATCH)] * MANY, "plan"),
    "skipped": lambda: write_skipped([SkippedPage(PLACE, "", None, "")] * MANY),
    "documents": lambda: write_documents([Settled(LIGHT, MATCH)] * MANY, "nd1"),
    "seed-entries": lambda: write_seed_entries([Entry(b"", b"")] * MANY, 1, "plan"),
}


@pytest.mark.parametrize("name", LARGEST)
def test_the_largest_message_has_less_than_half_of_the_maximum_items(name: str) -> None:
    largest = max(LARGEST[name](), key=items_of)
    assert wire.MAX_ITEMS / 8 < items_of(largest) < wire.MAX_ITEMS / 2
    assert decode(largest, name)


def items_of(message: bytes) -> int:
    return announced_items(np.frombuffer(message, np.uint8)[8:])


def test_the_settings_allow_at_most_these_candidates() -> None:
    Settings(candidates=MOST_CANDIDATES)
    with pytest.raises(SettingsError):
        Settings(candidates=MOST_CANDIDATES + 1)
