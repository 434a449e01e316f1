"""What the fields of a message must be, so that nothing foreign gets past the reader of a message."""

from typing import Any

from neardup.errors import Corrupt, WrongPlan
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
    """A batch's name. Raises Corrupt."""
    match value:
        case [int(partition), int(first), int(last)] if all(each in _INT64 for each in value):
            return BatchId(partition, first, last)
    raise Corrupt(f"expected a batch as partition, first and last offset, got {value!r}")


def document_of(values: Any) -> DocumentId:
    """A document's id. Raises Corrupt."""
    # Spelled out: there are several of these in every row of evidence.
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
    """A fingerprint. Raises Corrupt."""
    if not isinstance(value, int) or value not in _UINT64:
        raise Corrupt(f"expected a number of 64 bits, got {value!r}")
    return value


def text_of(value: Any) -> str:
    """Text. Raises Corrupt."""
    if not isinstance(value, str):
        raise Corrupt(f"expected text, got {value!r}")
    return value


def optional_text_of(value: Any) -> str | None:
    """Text or nothing. Raises Corrupt."""
    return None if value is None else text_of(value)


def number_of(value: Any) -> float:
    """A number. Raises Corrupt."""
    if not isinstance(value, int | float):
        raise Corrupt(f"expected a number, got {value!r}")
    return value


def mask_of(value: Any) -> int:
    """A set of table numbers, one bit each, from its bytes. Raises Corrupt."""
    if not isinstance(value, bytes):
        raise Corrupt(f"expected bytes, got {value!r}")
    return int.from_bytes(value, "little")
