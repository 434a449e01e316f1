"""Answers: the fingerprints that a shard partition found for one owner, and the batches that it has completed.

Every shard partition answers every batch. Most answers contain no pairs, and are encoded without arrays: a few numbers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from neardup.errors import Corrupt
from neardup.messages import wire
from neardup.messages.fields import batch_of, is_word_array
from neardup.messages.formats import Format
from neardup.messages.wire import Body, Schema
from neardup.types import BatchId

_SCHEMA: Final = Schema("answers", 2)
_NO_WORDS: Final = np.empty(0, np.uint64)


@dataclass(frozen=True, slots=True)
class Answers:
    """Batches that shard partition `partition` has completed, and pairs: fingerprint `found[i]` is near `query[i]`."""

    partition: int
    batches: tuple[BatchId, ...]
    query: NDArray[np.uint64]
    found: NDArray[np.uint64]


def write_answers(answers: Answers, plan: str) -> bytes:
    """Encode a message to one owner; `plan` is the digest of the sender's plan."""
    body: Body = {"plan": plan, "partition": answers.partition, "batches": answers.batches}
    if answers.query.size:
        body |= {"query": answers.query, "found": answers.found}
    return wire.encode(_SCHEMA, body)


def read_answers(body: Body, partitions: int) -> Answers:
    """Read a message from one of `partitions` shard partitions. Raises Corrupt."""
    partition, batches = body.get("partition"), body.get("batches")
    query, found = body.get("query", _NO_WORDS), body.get("found", _NO_WORDS)
    if (
        not isinstance(partition, int)
        or partition not in range(partitions)
        or not isinstance(batches, list)
        or not is_word_array(query)
        or not is_word_array(found)
        or query.size != found.size
    ):
        raise Corrupt(f"expected partition, batches and pairs of fingerprints, got {sorted(body)}")
    return Answers(partition, tuple(map(batch_of, batches)), query, found)


def split_pairs(size: int, limit: int) -> Sequence[slice]:
    """Return slices of at most `limit` that cover `size` pairs; one empty slice if there are no pairs."""
    return [slice(start, start + limit) for start in range(0, size, limit)] or [slice(0, 0)]


ANSWERS: Final = Format(_SCHEMA, lambda body, context: read_answers(body, context.partitions))
