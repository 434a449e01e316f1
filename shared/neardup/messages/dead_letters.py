"""Records that could not be used, as they came, with where and why."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from neardup.errors import Corrupt, RecordError
from neardup.log import Output, Record
from neardup.messages import wire
from neardup.types import DeadLetter

MOST_DETAIL: Final = 2000
"""Letters of why: an error quotes what came, which may be long, and a dead letter must fit its topic."""


class Rejection(NamedTuple):
    """A record that a stage could not use, and why."""

    record: Record
    error: RecordError


def dead_letters(rejected: Sequence[Rejection], stage: str, topic: str) -> list[Output]:
    """One output a rejection."""
    return [Output(topic, None, None, encode(_dead_letter(each, stage))) for each in rejected]


def encode(letter: DeadLetter) -> bytes:
    """A dead letter as it goes on the topic."""
    return wire.encode(
        "dead-letter", {name: getattr(letter, name) for name in DeadLetter.__slots__ if name != "headers"}
        | {"headers": [list(pair) for pair in letter.headers]},
    )  # fmt: skip


def decode(value: bytes | None) -> DeadLetter:
    """Read one back. Raises WireError."""
    body: dict[str, Any] = wire.decode(value, "dead-letter")
    try:
        # Kafka allows a header without a value. memoryview, because bytes(n) would make n zeros of a number.
        headers = tuple((str(name), memoryview(content or b"").tobytes()) for name, content in body.pop("headers"))
        return DeadLetter(**body, headers=headers)
    except (KeyError, TypeError, ValueError) as error:
        raise Corrupt(f"expected the fields of a dead letter, got {sorted(body)}") from error


def _dead_letter(rejection: Rejection, stage: str) -> DeadLetter:
    record, error = rejection
    return DeadLetter(
        topic=record.topic,
        partition=record.partition,
        offset=record.offset,
        timestamp=record.timestamp,
        key=record.key,
        value=record.value,
        headers=tuple(record.headers),
        stage=stage,
        reason=error.reason,
        detail=str(error)[:MOST_DETAIL],
    )
