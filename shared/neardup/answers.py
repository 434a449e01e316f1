"""Answers: what a shard found for the fingerprints of one owner, and for which batches it is through."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neardup import wire
from neardup.errors import Corrupt
from neardup.types import BatchId


@dataclass(frozen=True, slots=True)
class Answers:
    """Shard partition `partition` is done with `batches`; pair i says that `found[i]` is near `query[i]`."""

    partition: int
    batches: tuple[BatchId, ...]
    query: NDArray[np.uint64]
    found: NDArray[np.uint64]


def write_answers(answers: Answers, plan: str) -> bytes:
    """A message for one owner; `plan` is the digest of the sender's plan."""
    return wire.encode(
        "answers",
        {
            "plan": plan,
            "partition": answers.partition,
            "batches": np.array(answers.batches, np.int64).reshape(-1, 3),
            "query": answers.query,
            "found": answers.found,
        },
    )


def read_answers(body: dict[str, Any], partitions: int) -> Answers:
    """The body of a message from one of so many shard partitions. Raises Corrupt."""
    partition, batches, query, found = (body.get(name) for name in ("partition", "batches", "query", "found"))
    columns = (query, found)
    if (
        not isinstance(partition, int)
        or partition not in range(partitions)
        or not _is_array(batches, np.int64, 2)
        or not all(_is_array(column, np.uint64, 1) for column in columns)
        or batches.shape[1] != 3  # type: ignore[union-attr]
        or query.size != found.size  # type: ignore[union-attr]
    ):
        raise Corrupt(f"expected partition, batches and pairs of fingerprints, got {sorted(body)}")
    assert isinstance(batches, np.ndarray)
    return Answers(partition, tuple(BatchId(*row) for row in batches.tolist()), query, found)  # type: ignore[arg-type]


def split_pairs(size: int, limit: int) -> Sequence[slice]:
    """Slices that cut so many pairs into messages."""
    return [slice(start, start + limit) for start in range(0, size, limit)] or [slice(0, 0)]


def _is_array(value: Any, dtype: type[np.generic], ndim: int) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == dtype and value.ndim == ndim
