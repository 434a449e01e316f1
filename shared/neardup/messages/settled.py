"""Batches of settled documents, from the aggregator to the offline pass.

A document goes out once, when it is settled. One with the same tokens as an earlier document goes without its sketch:
the other one's is the same. A message names the signature version: sketches of different ones cannot be compared.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from neardup.errors import Corrupt
from neardup.matching.match import Match
from neardup.messages import wire
from neardup.messages.document_columns import check, columns_of, documents_of, size_of, split
from neardup.messages.questions import packed_match, size_of_match, unpacked_match
from neardup.types import Document, Relation

_SAME_TOKENS: Final = (Relation.IDENTICAL, Relation.SAME_TEXT)
_NO_SKETCH: Final = np.empty(0, np.uint64)


class Settled(NamedTuple):
    """A document and the match that it was settled with; None if it was unique."""

    document: Document
    match: Match | None


class Batch(NamedTuple):
    """A message: the documents' columns (`document_columns`) and the match of each."""

    signature_version: str
    columns: dict[str, Any]
    matches: list[Match | None]


def write_documents(settled: Sequence[Settled], signature_version: str) -> Iterator[bytes]:
    """Messages of about 512 KB."""
    for some in split(settled, lambda each: size_of(each.document) + size_of_match(each.match)):
        sketches = [_NO_SKETCH if _has_same_tokens(each.match) else each.document.sketch for each in some]
        columns = columns_of([each.document for each in some], sketches)
        columns |= {"match": [packed_match(each.match) for each in some], "signature": signature_version}
        yield wire.encode("documents", columns)


def read_documents(value: bytes | None) -> list[Settled]:
    """The documents of a message. Raises WireError."""
    batch = read_batch(value)
    documents = documents_of(batch.columns, None)
    return [Settled(document, match) for document, match in zip(documents, batch.matches, strict=True)]


def read_batch(value: bytes | None) -> Batch:
    """The same as columns, for who needs no objects. Raises WireError."""
    return batch_of(wire.decode(value, "documents"))


def batch_of(body: dict[str, Any]) -> Batch:
    """The same from the body of a message. Raises WireError."""
    check(body)
    signature = body.get("signature")
    if not isinstance(signature, str):
        raise Corrupt(f"expected the signature version of documents, got {signature!r}")
    return Batch(signature, body, _matches(body))


def _has_same_tokens(match: Match | None) -> bool:
    return match is not None and match.relation in _SAME_TOKENS


def _matches(body: dict[str, Any]) -> list[Match | None]:
    try:
        matches = [unpacked_match(values) for values in body["match"]]
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise Corrupt(f"expected the matches of documents, got {sorted(body)}: {error!r}") from error
    if len(matches) != len(body["url"]):
        raise Corrupt(f"expected {len(body['url'])} matches, got {len(matches)}")
    return matches
