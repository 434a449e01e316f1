"""Tests of settled documents for the offline pass: round trips, sizes, and rejection of invalid ones."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.errors import Corrupt, WireError
from neardup.matching.found_by import found_by_table
from neardup.matching.match import Match
from neardup.messages.document_columns import BATCH_BYTES
from neardup.messages.settled import Settled, write_documents
from neardup.types import Document, DocumentId, Relation
from tests.support.documents import (
    KAFKA_MESSAGE_BYTES,
    LONG_URLS,
    anything,
    body_of,
    document,
    documents,
    matches,
    plain,
    read_documents,
    utf8,
)
from tests.support.messages import encode

MATCH = Match(
    id=DocumentId(1, 2, 3),
    url="u",
    relation=Relation.NEAR,
    hamming=2,
    resemblance=0.8,
    containment=None,
    found_by=found_by_table(0),
    group=DocumentId(1, 2, 3),
    group_url="u",
)


def same_tokens(match: Match | None) -> bool:
    return match is not None and match.relation in (Relation.IDENTICAL, Relation.SAME_TEXT)


@given(st.lists(st.tuples(documents, st.none() | matches), max_size=5))
def test_settled_documents_are_read_back_but_copies_have_no_sketch(some: list[tuple[Document, Match | None]]) -> None:
    messages = list(write_documents([Settled(*each) for each in some], "nd1"))
    got = [each for message in messages for each in read_documents(message)]
    assert [match for _, match in got] == [match for _, match in some]
    for (sent, match), (came, _) in zip(some, got, strict=True):
        expected = replace(sent, sketch=np.empty(0, np.uint64)) if same_tokens(match) else sent
        assert plain(came) == plain(expected)


def test_many_settled_documents_are_split_into_messages_below_the_limit_of_kafka() -> None:
    some = [Settled(document(offset, 1), MATCH) for offset in range(2000)]
    messages = list(write_documents(some, "nd1"))
    assert len(messages) > 1
    assert max(map(len, messages)) < KAFKA_MESSAGE_BYTES
    assert sum(len(read_documents(message)) for message in messages) == 2000


@pytest.mark.parametrize("url", LONG_URLS)
def test_settled_documents_with_long_urls_stay_below_the_limit_of_kafka(url: str) -> None:
    match = replace(MATCH, url=url, group_url=url)
    one = document(0, 1, url=url)
    some = [Settled(replace(one, id=one.id._replace(offset=offset)), match) for offset in range(100)]
    messages = list(write_documents(some, "nd1"))
    assert max(map(len, messages)) <= BATCH_BYTES + 3 * len(url.encode()) + 4096 < KAFKA_MESSAGE_BYTES
    got = [each for message in messages for each in read_documents(message)]
    assert [(each.document.id, each.match) for each in got] == [(each.document.id, match) for each in some]


@pytest.mark.parametrize("rows", [0, 2])
def test_settled_documents_with_another_number_of_checksums_are_corrupt(rows: int) -> None:
    [message] = write_documents([Settled(document(0, 1), None)], "nd1")
    changed = body_of(message, "documents") | {"checksums": np.zeros((rows, 48), np.uint8)}
    with pytest.raises(Corrupt, match=f"expected 1 rows of checksums, got {rows}"):
        read_documents(encode("documents", changed))


@given(
    changes=st.dictionaries(
        st.sampled_from(["match", "url", "sketch", "fingerprint", "checksums", "id", "words"]), anything, min_size=1
    )
)
def test_any_settled_documents_raise_only_wire_errors(changes: dict[str, Any]) -> None:
    [message] = write_documents([Settled(document(0, 1), None)], "nd1")
    try:
        got = read_documents(encode("documents", body_of(message, "documents") | changes))
    except WireError:
        return
    assert all(isinstance(each.document.url, str) for each in got)


@given(value=st.none() | st.binary() | utf8.map(str.encode))
def test_a_foreign_value_is_a_wire_error(value: bytes | None) -> None:
    with pytest.raises(WireError):
        read_documents(value)
