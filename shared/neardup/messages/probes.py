"""Probes: messages from the featurizer that make a shard partition look up fingerprints and then insert them.

A probe of a permuted table consists of the fingerprint alone. A bucket table also needs the bucket keys. The
probabilistic search also needs the weight of each bit's decision (`FlipModel.levels_of`). Probes of canaries are
query-only: the shard does not insert them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from neardup.errors import Corrupt
from neardup.messages import wire
from neardup.messages.fields import batch_of, is_word_array
from neardup.messages.formats import Format
from neardup.messages.wire import Body, Schema
from neardup.types import BatchId

_SCHEMA: Final = Schema("probes", 2)


@dataclass(frozen=True, slots=True)
class Probes:
    """The probes of one batch for one shard partition.

    `query_only` marks fingerprints that are not inserted; None if all are inserted.
    """

    batch: BatchId
    fingerprints: NDArray[np.uint64]
    keys: NDArray[np.uint64] | None = None
    levels: NDArray[np.uint8] | None = None
    query_only: NDArray[np.bool_] | None = None


def write_probes(probes: Probes, plan: str) -> bytes:
    """Encode a message; `plan` is the digest of the sender's plan."""
    body: Body = {"batch": list(probes.batch), "plan": plan, "fingerprint": probes.fingerprints}
    if probes.keys is not None:
        body["key"] = probes.keys
    if probes.levels is not None:
        body["levels"] = probes.levels
    if probes.query_only is not None and probes.query_only.any():
        body["asks"] = probes.query_only.astype(np.uint8)
    return wire.encode(_SCHEMA, body)


def read_probes(body: Body) -> Probes:
    """Read the body of a message. Raises Corrupt."""
    fingerprints, keys, levels = body.get("fingerprint"), body.get("key"), body.get("levels")
    if not is_word_array(fingerprints):
        raise Corrupt(f"fingerprint: expected 64-bit words, got {fingerprints!r}")
    if keys is not None and not is_word_array(keys):
        raise Corrupt(f"key: expected 64-bit words, got {keys!r}")
    if keys is not None and keys.size != fingerprints.size:
        raise Corrupt(f"expected {fingerprints.size} keys, got {keys.size}")
    if levels is not None and (
        not isinstance(levels, np.ndarray) or levels.dtype != np.uint8 or levels.shape != (fingerprints.size, 64)
    ):
        raise Corrupt(f"expected 64 levels per fingerprint, got {levels!r}")
    query_only = _query_only(body.get("asks"), fingerprints.size)
    return Probes(batch_of(body.get("batch")), fingerprints, keys, levels, query_only)


def query_only_of(probes: Sequence[Probes]) -> NDArray[np.bool_] | None:
    """Concatenate the `query_only` marks of several messages; None if every probe is to be inserted."""
    if all(each.query_only is None for each in probes):
        return None
    return np.concatenate(
        [np.zeros(each.fingerprints.size, bool) if each.query_only is None else each.query_only for each in probes]
    )


def concatenated(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Concatenate arrays; a single array is returned without a copy."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _query_only(column: Any, size: int) -> NDArray[np.bool_] | None:
    if column is None:
        return None
    if not isinstance(column, np.ndarray) or column.dtype != np.uint8 or column.shape != (size,):
        raise Corrupt(f"expected {size} marks of query-only probes, got {column!r}")
    return column.astype(bool)


PROBES: Final = Format(_SCHEMA, lambda body, _: read_probes(body))
