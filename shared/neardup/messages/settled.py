"""Batches of settled documents, from the aggregators to the offline pass.

A document is written once, when it is settled. A document with the same tokens as an earlier one is written without its
sketch, because both sketches are equal. A message names the signature version, because sketches of different versions
cannot be compared.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from neardup.errors import Corrupt
from neardup.matching.match import Match
from neardup.messages import wire
from neardup.messages.document_columns import DocumentColumns, size_of, split
from neardup.messages.questions import packed_match, size_of_match, unpacked_match
from neardup.messages.wire import Schema
from neardup.types import Document, Relation

DOCUMENTS: Final = Schema("documents", 2)
_SAME_TOKENS: Final = (Relation.IDENTICAL, Relation.SAME_TEXT)
_NO_SKETCH: Final = np.empty(0, np.uint64)


class Settled(NamedTuple):
    """A document and the match with which it was settled, or None if it was unique."""

    document: Document
    match: Match | None


class Batch(NamedTuple):
    """The content of a message: documents as columns, and the match of each."""

    signature_version: str
    documents: DocumentColumns
    matches: list[Match | None]


def write_documents(settled: Sequence[Settled], signature_version: str) -> Iterator[bytes]:
    """Yield messages of about 512 KB."""
    for some in split(settled, lambda each: size_of(each.document) + size_of_match(each.match)):
        sketches = [_NO_SKETCH if _has_same_tokens(each.match) else each.document.sketch for each in some]
        columns = DocumentColumns.from_documents([each.document for each in some], sketches)
        matches = [packed_match(each.match) for each in some]
        yield wire.encode(DOCUMENTS, columns.to_body() | {"match": matches, "signature": signature_version})


def read_batch(value: bytes | None) -> Batch:
    """Return the content of a message as columns. Raises WireError."""
    return batch_of(wire.decode(value, DOCUMENTS))


def batch_of(body: dict[str, Any]) -> Batch:
    """Return the content of a message from its decoded body. Raises WireError."""
    documents = DocumentColumns.from_body(body, None)
    signature = body.get("signature")
    if not isinstance(signature, str):
        raise Corrupt(f"expected the signature version of documents, got {signature!r}")
    return Batch(signature, documents, _matches(body, len(documents)))


def _has_same_tokens(match: Match | None) -> bool:
    return match is not None and match.relation in _SAME_TOKENS


def _matches(body: dict[str, Any], count: int) -> list[Match | None]:
    try:
        matches = [unpacked_match(values) for values in body["match"]]
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise Corrupt(f"expected the matches of documents, got {sorted(body)}: {error!r}") from error
    if len(matches) != count:
        raise Corrupt(f"expected {count} matches, got {len(matches)}")
    return matches
