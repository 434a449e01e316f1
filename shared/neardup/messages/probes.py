"""Probes: "who is near these fingerprints in your table?" and "remember them", from the featurizer to a shard.

A permuted table needs the fingerprints alone; a bucket table also their keys; the probabilistic search how strongly
each bit was decided (`FlipModel.levels_of`). Those of canaries are not to be remembered: they only ask.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neardup.errors import Corrupt
from neardup.messages import wire
from neardup.messages.fields import batch_of, require_plan
from neardup.types import BatchId


@dataclass(frozen=True, slots=True)
class Probes:
    """Those of one batch for one shard partition. `asks` is True for those that only ask; None where none does."""

    batch: BatchId
    fingerprints: NDArray[np.uint64]
    keys: NDArray[np.uint64] | None = None
    levels: NDArray[np.uint8] | None = None
    asks: NDArray[np.bool_] | None = None


def write_probes(probes: Probes, plan: str) -> bytes:
    """A message; `plan` is the digest of the sender's plan."""
    body: dict[str, Any] = {"batch": list(probes.batch), "plan": plan, "fingerprint": probes.fingerprints}
    if probes.keys is not None:
        body["key"] = probes.keys
    if probes.levels is not None:
        body["levels"] = probes.levels
    if probes.asks is not None and probes.asks.any():
        body["asks"] = probes.asks.astype(np.uint8)
    return wire.encode("probes", body)


def read_probes(body: dict[str, Any], plan: str) -> Probes:
    """The body of a message. Raises Corrupt, or WrongPlan when the sender has another plan."""
    require_plan(body, plan)
    fingerprints, keys, levels = body.get("fingerprint"), body.get("key"), body.get("levels")
    for name, column, dtype in (("fingerprint", fingerprints, np.uint64), ("key", keys, np.uint64)):
        if column is None and name == "key":
            continue
        if not isinstance(column, np.ndarray) or column.dtype != dtype or column.ndim != 1:
            raise Corrupt(f"{name}: expected 64-bit words, got {column!r}")
    assert isinstance(fingerprints, np.ndarray)
    if keys is not None and keys.size != fingerprints.size:
        raise Corrupt(f"expected {fingerprints.size} keys, got {keys.size}")
    if levels is not None and (
        not isinstance(levels, np.ndarray) or levels.dtype != np.uint8 or levels.shape != (fingerprints.size, 64)
    ):
        raise Corrupt(f"expected 64 levels a fingerprint, got {levels!r}")
    return Probes(batch_of(body.get("batch")), fingerprints, keys, levels, _asks(body.get("asks"), fingerprints.size))


def asks_of(probes: Sequence[Probes]) -> NDArray[np.bool_] | None:
    """Which of these, one after the other, only ask; None where none does."""
    if all(each.asks is None for each in probes):
        return None
    nobody = (np.zeros(each.fingerprints.size, bool) for each in probes)
    return np.concatenate([none if each.asks is None else each.asks for each, none in zip(probes, nobody, strict=True)])


def concatenated(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """One array of several; the only one is not copied."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _asks(column: Any, size: int) -> NDArray[np.bool_] | None:
    if column is None:
        return None
    if not isinstance(column, np.ndarray) or column.dtype != np.uint8 or column.shape != (size,):
        raise Corrupt(f"expected {size} marks of who only asks, got {column!r}")
    return column.astype(bool)
