"""Questions between owners, and the evidence that comes back.

"Here is a document of mine; a shard found your fingerprint near its. Is it a duplicate of one that you know?" The owner
who is asked also learns: a later document of its own may be a duplicate of the one in the question.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from neardup import wire
from neardup.document_columns import columns_of, documents_of, size_of, split
from neardup.errors import Corrupt
from neardup.evidence import RELATIONS, Match
from neardup.types import Document, DocumentId

_PAIR_BYTES: Final = 24
_EVIDENCE_BYTES: Final = 400


@dataclass(frozen=True, slots=True)
class Question:
    """A document and the fingerprints of one other owner that were found near it, each with the tables that did."""

    document: Document
    candidates: dict[int, int]


class Evidence(NamedTuple):
    """What the owner of `candidate` says about the document: a match, or that it has none."""

    document: DocumentId
    fingerprint: int
    candidate: int
    match: Match | None


def write_questions(questions: Sequence[Question], asker: int) -> Iterator[bytes]:
    """Messages for one owner, from the owner `asker`."""
    for some in split(questions, lambda each: size_of(each.document) + _PAIR_BYTES * len(each.candidates)):
        pairs = [
            (number, candidate, found_by)
            for number, each in enumerate(some)
            for candidate, found_by in each.candidates.items()
        ]
        yield wire.encode(
            "questions",
            columns_of([each.document for each in some])
            | {
                "asker": asker,
                "number": np.array([number for number, _, _ in pairs], np.int64),
                "candidate": np.array([candidate for _, candidate, _ in pairs], np.uint64),
                "found_by": [_mask_bytes(found_by) for _, _, found_by in pairs],
            },
        )


def read_questions(body: dict[str, Any]) -> tuple[int, list[Question]]:
    """(asker, questions) from the body of a message. Raises Corrupt."""
    documents = documents_of(body)
    try:
        questions = [Question(document, {}) for document in documents]
        columns = zip(body["number"].tolist(), body["candidate"].tolist(), body["found_by"], strict=True)
        for number, candidate, found_by in columns:
            questions[number].candidates[candidate] = int.from_bytes(found_by, "little")
        return int(body["asker"]), questions
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise Corrupt(f"expected the columns of questions, got {sorted(body)}: {error!r}") from error


def write_evidence(evidence: Sequence[Evidence]) -> Iterator[bytes]:
    """Messages for one owner."""
    for some in split(evidence, lambda each: _PAIR_BYTES if each.match is None else _EVIDENCE_BYTES):
        rows = [[*each.document, each.fingerprint, each.candidate, packed_match(each.match)] for each in some]
        yield wire.encode("evidence", {"rows": rows})


def read_evidence(body: dict[str, Any]) -> list[Evidence]:
    """The body of a message. Raises Corrupt."""
    try:
        return [
            Evidence(DocumentId(timestamp, partition, offset), fingerprint, candidate, unpacked_match(match))
            for timestamp, partition, offset, fingerprint, candidate, match in body["rows"]
        ]
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise Corrupt(f"expected rows of evidence, got {sorted(body)}: {error!r}") from error


def packed_match(match: Match | None) -> list[Any] | None:
    """Plain values, for messages and for the directory."""
    if match is None:
        return None
    relation, found_by = RELATIONS.index(match.relation), _mask_bytes(match.found_by)
    return list(match._replace(relation=relation, found_by=found_by))  # type: ignore[arg-type]


def unpacked_match(values: list[Any] | None) -> Match | None:
    """A match from its plain values. Raises TypeError, ValueError or IndexError if they are none."""
    if values is None:
        return None
    place, url, relation, hamming, resemblance, containment, found_by, group, group_url = values
    mask = int.from_bytes(found_by, "little")
    first = DocumentId(*group)
    return Match(
        DocumentId(*place), url, RELATIONS[relation], hamming, resemblance, containment, mask, first, group_url
    )


def _mask_bytes(mask: int) -> bytes:
    return mask.to_bytes((mask.bit_length() + 7) // 8, "little")
