"""Registrations: documents on their way from the featurizer to their owners, a batch to a message.

With the documents comes the list of shard partitions that will answer for them. A page without a fingerprint goes to
an owner, too, which only tells the crawler.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from neardup.errors import Corrupt
from neardup.messages import wire
from neardup.messages.document_columns import documents_of, split, split_rows, taken
from neardup.messages.fields import batch_of, document_of, optional_text_of, text_of
from neardup.types import BatchId, Document, SkippedPage


@dataclass(frozen=True, slots=True)
class Registrations:
    """Documents of one batch that have the same owner, and the shard partitions that answer for this batch."""

    batch: BatchId
    expected: tuple[int, ...]
    documents: list[Document]


def write_registrations(
    batch: BatchId, expected: Sequence[int], documents: dict[str, Any], rows: Sequence[int], plan: str
) -> Iterator[bytes]:
    """Messages for the owner of these rows of the documents' columns, each about 512 KB at most."""
    head = {"batch": list(batch), "expected": np.array(expected, np.int64), "plan": plan}
    for some in split_rows(documents, rows):
        yield wire.encode("registrations", head | taken(documents, some))


def read_registrations(body: dict[str, Any], partitions: int, mips: int) -> Registrations:
    """The body of a message, in a deployment of so many shard partitions and MIPs values. Raises WireError."""
    expected = _partitions(body.get("expected"), partitions)
    return Registrations(batch_of(body.get("batch")), expected, documents_of(body, mips))


def write_skipped(pages: Sequence[SkippedPage]) -> Iterator[bytes]:
    """Messages for one owner, each about 512 KB at most."""
    for some in split(pages, lambda page: 80 + 4 * (len(page.url) + len(page.fetched_at or "") + len(page.reason))):
        rows = [[*page.id, page.url, page.fetched_at, page.reason] for page in some]
        yield wire.encode("skipped", {"pages": rows})


def read_skipped(body: dict[str, Any]) -> list[SkippedPage]:
    """The body of a message. Raises WireError."""
    try:
        return [
            SkippedPage(document_of(place), text_of(url), optional_text_of(fetched_at), text_of(reason))
            for *place, url, fetched_at, reason in body["pages"]
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise Corrupt(f"expected skipped pages, got {sorted(body)}: {error!r}") from error


def _partitions(value: Any, count: int) -> tuple[int, ...]:
    if not isinstance(value, np.ndarray) or value.dtype != np.int64 or value.ndim != 1 or not value.size:
        raise Corrupt(f"expected some shard partitions as int64, got {value!r}")
    if value.min() < 0 or value.max() >= count:
        raise Corrupt(f"expected shard partitions below {count}, got {value.tolist()}")
    return tuple(value.tolist())
