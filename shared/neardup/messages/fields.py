"""Validators of message fields. Each returns the typed value, or raises an error that quotes the field."""

from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from neardup.errors import Corrupt, WrongPlan
from neardup.matching.found_by import FoundBy, unpack_found_by
from neardup.types import BatchId, DocumentId

_INT64 = range(-(2**63), 2**63)
_LEAST, _MOST = _INT64[0], _INT64[-1]
_UINT64 = range(2**64)


def require_plan(body: dict[str, Any], plan: str) -> None:
    """Raise WrongPlan unless the message was made with this plan."""
    got = body.get("plan")
    if not isinstance(got, str) or got != plan:
        raise WrongPlan(f"expected a message made with plan {plan}, got {got!r}: give every service the same settings")


def batch_of(value: Any) -> BatchId:
    """Return the batch id in [partition, first offset, last offset]. Raises Corrupt."""
    match value:
        case [int(partition), int(first), int(last)] if all(each in _INT64 for each in value):
            return BatchId(partition, first, last)
    raise Corrupt(f"expected a batch as partition, first and last offset, got {value!r}")


def document_of(values: Any) -> DocumentId:
    """Return the document id in [timestamp, partition, offset]. Raises Corrupt."""
    # Written out instead of a loop for speed: every row of evidence has several ids.
    if isinstance(values, list | tuple) and len(values) == 3:
        timestamp, partition, offset = values
        if (
            isinstance(timestamp, int)
            and isinstance(partition, int)
            and isinstance(offset, int)
            and _LEAST <= timestamp <= _MOST
            and _LEAST <= partition <= _MOST
            and _LEAST <= offset <= _MOST
        ):
            return DocumentId(timestamp, partition, offset)
    raise Corrupt(f"expected a document as timestamp, partition and offset, got {values!r}")


def word_of(value: Any) -> int:
    """Return a fingerprint. Raises Corrupt."""
    if not isinstance(value, int) or value not in _UINT64:
        raise Corrupt(f"expected a number of 64 bits, got {value!r}")
    return value


def is_word_array(value: Any) -> TypeGuard[NDArray[np.uint64]]:
    """Return whether a value is a one-dimensional array of 64-bit words."""
    return isinstance(value, np.ndarray) and value.dtype == np.uint64 and value.ndim == 1


def text_of(value: Any) -> str:
    """Return text. Raises Corrupt."""
    if not isinstance(value, str):
        raise Corrupt(f"expected text, got {value!r}")
    return value


def optional_text_of(value: Any) -> str | None:
    """Return text or None. Raises Corrupt."""
    return None if value is None else text_of(value)


def number_of(value: Any) -> float:
    """Return a number. Raises Corrupt."""
    if not isinstance(value, int | float):
        raise Corrupt(f"expected a number, got {value!r}")
    return value


def found_by_of(value: Any) -> FoundBy:
    """Return a set of tables and bands from its bytes. Raises Corrupt."""
    if not isinstance(value, bytes):
        raise Corrupt(f"expected bytes, got {value!r}")
    return unpack_found_by(value)
