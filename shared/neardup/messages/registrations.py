"""Registrations: messages that carry the documents of a batch from the featurizer to their owners.

A registration lists the shard partitions that will answer for its documents. A page without a fingerprint is also sent
to an owner, as a skipped page, for which the owner only writes a verdict.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from neardup.errors import Corrupt
from neardup.messages import wire
from neardup.messages.document_columns import DocumentColumns, split
from neardup.messages.fields import batch_of, document_of, optional_text_of, text_of
from neardup.messages.formats import Format
from neardup.messages.wire import Schema
from neardup.types import BatchId, Document, SkippedPage

_SCHEMA: Final = Schema("registrations", 2)
_SKIPPED_SCHEMA: Final = Schema("skipped", 1)


@dataclass(frozen=True, slots=True)
class Registrations:
    """Documents of one batch that have the same owner, and the shard partitions that answer for this batch."""

    batch: BatchId
    expected: tuple[int, ...]
    documents: list[Document]


@dataclass(frozen=True, slots=True)
class SkippedPages:
    """Pages without a fingerprint."""

    pages: list[SkippedPage]


def write_registrations(
    batch: BatchId, expected: Sequence[int], documents: DocumentColumns, rows: Sequence[int], plan: str
) -> Iterator[bytes]:
    """Yield messages of about 512 KB for the owner of `rows` of the documents.

    `expected` are the shard partitions that will answer, `plan` is the digest of the sender's plan.
    """
    head = {"batch": list(batch), "expected": np.array(expected, np.int64), "plan": plan}
    for some in documents.split(rows):
        yield wire.encode(_SCHEMA, head | documents.select(some).to_body())


def read_registrations(body: dict[str, Any], partitions: int, mips: int) -> Registrations:
    """Read the body of a message, in a deployment with `partitions` shard partitions and `mips` MIPs values.

    Raises WireError.
    """
    expected = _partitions(body.get("expected"), partitions)
    return Registrations(batch_of(body.get("batch")), expected, list(DocumentColumns.from_body(body, mips)))


def write_skipped(pages: Sequence[SkippedPage]) -> Iterator[bytes]:
    """Yield messages of about 512 KB for one owner."""
    for some in split(pages, lambda page: 80 + 4 * (len(page.url) + len(page.fetched_at or "") + len(page.reason))):
        rows = [[*page.id, page.url, page.fetched_at, page.reason] for page in some]
        yield wire.encode(_SKIPPED_SCHEMA, {"pages": rows})


def read_skipped(body: dict[str, Any]) -> SkippedPages:
    """Return the skipped pages in the body of a message. Raises WireError."""
    try:
        return SkippedPages(
            [
                SkippedPage(document_of(place), text_of(url), optional_text_of(fetched_at), text_of(reason))
                for *place, url, fetched_at, reason in body["pages"]
            ]
        )
    except (KeyError, TypeError, ValueError) as error:
        raise Corrupt(f"expected skipped pages, got {sorted(body)}: {error!r}") from error


def _partitions(value: Any, count: int) -> tuple[int, ...]:
    if not isinstance(value, np.ndarray) or value.dtype != np.int64 or value.ndim != 1 or not value.size:
        raise Corrupt(f"expected one or more shard partitions as int64, got {value!r}")
    if value.min() < 0 or value.max() >= count:
        raise Corrupt(f"expected shard partitions below {count}, got {value.tolist()}")
    return tuple(value.tolist())


REGISTRATIONS: Final = Format(_SCHEMA, lambda body, context: read_registrations(body, context.partitions, context.mips))
SKIPPED: Final = Format(_SKIPPED_SCHEMA, lambda body, _: read_skipped(body), needs_plan=False)
