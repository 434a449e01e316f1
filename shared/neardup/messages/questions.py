"""Questions between owners, and the evidence that comes back.

"Here is a document of mine; a shard found your fingerprints near its. Is it a duplicate of one that you know?" The
answer is the best match of all. The owner who is asked also learns: a later document of its own may be a duplicate of
the one in the question.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, NamedTuple

import numpy as np

from neardup.errors import Corrupt
from neardup.matching.match import RELATIONS, Match
from neardup.messages import wire
from neardup.messages.document_columns import DocumentColumns, expect_column, size_of, split
from neardup.messages.fields import document_of, mask_of, number_of, text_of, word_of
from neardup.types import Document, DocumentId

_PAIR_BYTES: Final = 80


@dataclass(frozen=True, slots=True)
class Question:
    """A document and the fingerprints of one other owner that were found near it, each with the tables that did."""

    document: Document
    candidates: dict[int, int]


class Evidence(NamedTuple):
    """What the owner of all `candidates` says about the document: its best match there, or that it has none."""

    document: DocumentId
    fingerprint: int
    candidates: tuple[int, ...]
    match: Match | None


def write_questions(questions: Sequence[Question], asker: int, plan: str) -> Iterator[bytes]:
    """Messages for one owner, from the owner `asker`; `plan` is the digest of its plan."""
    for some in split(questions, lambda each: size_of(each.document) + _PAIR_BYTES * len(each.candidates)):
        pairs = [
            (number, candidate, found_by)
            for number, each in enumerate(some)
            for candidate, found_by in each.candidates.items()
        ]
        yield wire.encode(
            "questions",
            DocumentColumns.from_documents([each.document for each in some]).to_body()
            | {
                "plan": plan,
                "asker": asker,
                "number": np.array([number for number, _, _ in pairs], np.int64),
                "candidate": np.array([candidate for _, candidate, _ in pairs], np.uint64),
                "found_by": [_mask_bytes(found_by) for _, _, found_by in pairs],
            },
        )


def read_questions(body: dict[str, Any], owners: int, mips: int) -> tuple[int, list[Question]]:
    """(asker, questions) from a message, in a deployment of so many owners and MIPs values. Raises Corrupt."""
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
            questions[number].candidates[word_of(candidate)] = mask_of(found_by)
        return asker, questions
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise Corrupt(f"expected the columns of questions, got {sorted(body)}: {error!r}") from error


def write_evidence(evidence: Sequence[Evidence], plan: str) -> Iterator[bytes]:
    """Messages for one owner; `plan` is the digest of the sender's plan."""
    for some in split(evidence, lambda each: _PAIR_BYTES + 8 * len(each.candidates) + size_of_match(each.match)):
        yield wire.encode(
            "evidence",
            {
                "plan": plan,
                "document": np.array([each.document for each in some], np.int64).reshape(-1, 3),
                "fingerprint": np.array([each.fingerprint for each in some], np.uint64),
                "candidate": np.array([word for each in some for word in each.candidates], np.uint64),
                "candidates": np.array([len(each.candidates) for each in some], np.int64),
                "match": [packed_match(each.match) for each in some],
            },
        )


def read_evidence(body: dict[str, Any]) -> list[Evidence]:
    """The body of a message. Raises Corrupt."""
    try:
        documents, counts = body["document"], body["candidates"]
        expect_column("document", documents, np.int64, 3)
        expect_column("candidates", counts, np.int64)
        for name in ("fingerprint", "candidate"):
            expect_column(name, body[name], np.uint64)
        # Added up by Python: a sum of numpy's could wrap around to the right one.
        if (counts < 0).any() or sum(counts.tolist()) != body["candidate"].size:
            raise Corrupt(f"expected {sum(counts.tolist())} candidates, got {body['candidate'].size}")
        words = iter(body["candidate"].tolist())
        columns = zip(documents.tolist(), body["fingerprint"].tolist(), counts.tolist(), body["match"], strict=True)
        return [
            Evidence(DocumentId(*place), fingerprint, tuple(islice(words, count)), unpacked_match(match))
            for place, fingerprint, count, match in columns
        ]
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise Corrupt(f"expected the columns of evidence, got {sorted(body)}: {error!r}") from error


def size_of_match(match: Match | None) -> int:
    """Bytes on the wire, about, and rather more."""
    return 0 if match is None else 160 + 4 * (len(match.url) + len(match.group_url))


def packed_match(match: Match | None) -> list[Any] | None:
    """Plain values, for messages and for the directory."""
    if match is None:
        return None
    place, url, relation, hamming, resemblance, containment, found_by, group, group_url = match
    return [
        place, url, RELATIONS.index(relation), hamming, resemblance, containment, _mask_bytes(found_by), group,
        group_url,
    ]  # fmt: skip


def unpacked_match(values: Any) -> Match | None:
    """A match from its plain values, whatever they are. Raises Corrupt."""
    if values is None:
        return None
    match values:
        case [place, url, int(relation), int(hamming), resemblance, containment, found_by, group, group_url] if (
            relation in range(len(RELATIONS))
        ):
            return Match(
                document_of(place), text_of(url), RELATIONS[relation], hamming, number_of(resemblance),
                None if containment is None else number_of(containment), mask_of(found_by), document_of(group),
                text_of(group_url),
            )  # fmt: skip
    raise Corrupt(f"expected a match, got {values!r}")


def _mask_bytes(mask: int) -> bytes:
    return mask.to_bytes((mask.bit_length() + 7) // 8, "little")
