"""Answers: what a shard found for the fingerprints of one owner, and for which batches it is through.

Every batch of pages has an answer from every shard partition, most of them that nothing was found: those are a few
plain numbers on the wire, and no arrays.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from neardup.errors import Corrupt
from neardup.messages import wire
from neardup.messages.fields import batch_of
from neardup.types import BatchId

_NOTHING: Final = np.empty(0, np.uint64)


@dataclass(frozen=True, slots=True)
class Answers:
    """Shard partition `partition` is done with `batches`; pair i says that `found[i]` is near `query[i]`."""

    partition: int
    batches: tuple[BatchId, ...]
    query: NDArray[np.uint64]
    found: NDArray[np.uint64]


def write_answers(answers: Answers, plan: str) -> bytes:
    """A message for one owner; `plan` is the digest of the sender's plan."""
    body: dict[str, Any] = {"plan": plan, "partition": answers.partition, "batches": answers.batches}
    if answers.query.size:
        body |= {"query": answers.query, "found": answers.found}
    return wire.encode("answers", body)


def read_answers(body: dict[str, Any], partitions: int) -> Answers:
    """The body of a message from one of so many shard partitions. Raises Corrupt."""
    partition, batches = body.get("partition"), body.get("batches")
    query, found = body.get("query", _NOTHING), body.get("found", _NOTHING)
    if (
        not isinstance(partition, int)
        or partition not in range(partitions)
        or not isinstance(batches, list)
        or not _are_words(query)
        or not _are_words(found)
        or query.size != found.size
    ):
        raise Corrupt(f"expected partition, batches and pairs of fingerprints, got {sorted(body)}")
    return Answers(partition, tuple(map(batch_of, batches)), query, found)


def split_pairs(size: int, limit: int) -> Sequence[slice]:
    """Slices that cut so many pairs into messages."""
    return [slice(start, start + limit) for start in range(0, size, limit)] or [slice(0, 0)]


def _are_words(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == np.uint64 and value.ndim == 1
