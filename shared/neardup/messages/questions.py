"""Questions between owners, and the evidence that answers them.

A question sends a document to the owner of fingerprints that a shard found near it. The evidence is the best match
among the documents with these fingerprints, or None. The receiver also uses the document itself: a later document of
the receiver may turn out to be its duplicate.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, NamedTuple

import numpy as np

from neardup.errors import Corrupt
from neardup.matching.found_by import Candidates, pack_found_by
from neardup.matching.match import RELATIONS, Match
from neardup.messages import wire
from neardup.messages.document_columns import DocumentColumns, expect_column, size_of, split
from neardup.messages.fields import document_of, found_by_of, number_of, text_of, word_of
from neardup.messages.formats import Format
from neardup.messages.wire import Body, Schema
from neardup.types import Document, DocumentId

_QUESTIONS_SCHEMA: Final = Schema("questions", 1)
_EVIDENCE_SCHEMA: Final = Schema("evidence", 2)
_PAIR_BYTES: Final = 80


@dataclass(frozen=True, slots=True)
class Question:
    """A document and its candidates that belong to one other owner."""

    document: Document
    candidates: Candidates


@dataclass(frozen=True, slots=True)
class Questions:
    """A batch of questions from the owner `asker`."""

    asker: int
    questions: list[Question]


class Evidence(NamedTuple):
    """The best match of a document among all `candidates`, or None, from the owner of these fingerprints."""

    document: DocumentId
    fingerprint: int
    candidates: tuple[int, ...]
    match: Match | None


@dataclass(frozen=True, slots=True)
class EvidenceBatch:
    """A batch of evidence from one owner."""

    evidence: list[Evidence]


def write_questions(questions: Sequence[Question], asker: int, plan: str) -> Iterator[bytes]:
    """Yield messages to one owner, from the owner `asker`; `plan` is the digest of the sender's plan."""
    for some in split(questions, lambda each: size_of(each.document) + _PAIR_BYTES * len(each.candidates)):
        pairs = [
            (number, candidate, found_by)
            for number, each in enumerate(some)
            for candidate, found_by in each.candidates.items()
        ]
        yield wire.encode(
            _QUESTIONS_SCHEMA,
            DocumentColumns.from_documents([each.document for each in some]).to_body()
            | {
                "plan": plan,
                "asker": asker,
                "number": np.array([number for number, _, _ in pairs], np.int64),
                "candidate": np.array([candidate for _, candidate, _ in pairs], np.uint64),
                "found_by": [pack_found_by(found_by) for _, _, found_by in pairs],
            },
        )


def read_questions(body: Body, owners: int, mips: int) -> Questions:
    """Read the body of a message, in a deployment of `owners` owners and `mips` MIPs values. Raises Corrupt."""
    documents = DocumentColumns.from_body(body, mips)
    asker = body.get("asker")
    if not isinstance(asker, int) or asker not in range(owners):
        raise Corrupt(f"expected an owner below {owners}, got {asker!r}")
    try:
        questions = [Question(document, {}) for document in documents]
        columns = zip(body["number"].tolist(), body["candidate"].tolist(), body["found_by"], strict=True)
        for number, candidate, found_by in columns:
            if number not in range(len(questions)):
                raise Corrupt(f"expected the number of a document below {len(questions)}, got {number!r}")
            questions[number].candidates[word_of(candidate)] = found_by_of(found_by)
        return Questions(asker, questions)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise Corrupt(f"expected the columns of questions, got {sorted(body)}: {error!r}") from error


def write_evidence(evidence: Sequence[Evidence], plan: str) -> Iterator[bytes]:
    """Yield messages to one owner; `plan` is the digest of the sender's plan."""
    for some in split(evidence, lambda each: _PAIR_BYTES + 8 * len(each.candidates) + size_of_match(each.match)):
        yield wire.encode(
            _EVIDENCE_SCHEMA,
            {
                "plan": plan,
                "document": np.array([each.document for each in some], np.int64).reshape(-1, 3),
                "fingerprint": np.array([each.fingerprint for each in some], np.uint64),
                "candidate": np.array([word for each in some for word in each.candidates], np.uint64),
                "candidates": np.array([len(each.candidates) for each in some], np.int64),
                "match": [packed_match(each.match) for each in some],
            },
        )


def read_evidence(body: Body) -> EvidenceBatch:
    """Read the body of a message. Raises Corrupt."""
    try:
        documents, counts = body["document"], body["candidates"]
        expect_column("document", documents, np.int64, 3)
        expect_column("candidates", counts, np.int64)
        for name in ("fingerprint", "candidate"):
            expect_column(name, body[name], np.uint64)
        # Python's sum: numpy's could overflow and wrap around to the expected value.
        if (counts < 0).any() or sum(counts.tolist()) != body["candidate"].size:
            raise Corrupt(f"expected {sum(counts.tolist())} candidates, got {body['candidate'].size}")
        words = iter(body["candidate"].tolist())
        columns = zip(documents.tolist(), body["fingerprint"].tolist(), counts.tolist(), body["match"], strict=True)
        return EvidenceBatch(
            [
                Evidence(DocumentId(*place), fingerprint, tuple(islice(words, count)), unpacked_match(match))
                for place, fingerprint, count, match in columns
            ]
        )
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise Corrupt(f"expected the columns of evidence, got {sorted(body)}: {error!r}") from error


def size_of_match(match: Match | None) -> int:
    """Return an upper estimate of the size of a match in a message, in bytes."""
    return 0 if match is None else 160 + 4 * (len(match.url) + len(match.group_url))


def packed_match(match: Match | None) -> list[Any] | None:
    """Return the plain values of a match, for messages and for the directory."""
    if match is None:
        return None
    return [
        match.id, match.url, RELATIONS.index(match.relation), match.hamming, match.resemblance, match.containment,
        pack_found_by(match.found_by), match.group, match.group_url,
    ]  # fmt: skip


def unpacked_match(values: Any) -> Match | None:
    """Invert `packed_match`, for values of any type. Raises Corrupt."""
    if values is None:
        return None
    match values:
        case [place, url, int(relation), int(hamming), resemblance, containment, found_by, group, group_url] if (
            relation in range(len(RELATIONS))
        ):
            return Match(
                id=document_of(place),
                url=text_of(url),
                relation=RELATIONS[relation],
                hamming=hamming,
                resemblance=number_of(resemblance),
                containment=None if containment is None else number_of(containment),
                found_by=found_by_of(found_by),
                group=document_of(group),
                group_url=text_of(group_url),
            )
    raise Corrupt(f"expected a match, got {values!r}")


QUESTIONS: Final = Format(_QUESTIONS_SCHEMA, lambda body, context: read_questions(body, context.owners, context.mips))
EVIDENCE: Final = Format(_EVIDENCE_SCHEMA, lambda body, _: read_evidence(body))
