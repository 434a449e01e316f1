"""Dead letters: records that a stage could not use, unchanged, with their origin and the reason."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from neardup.errors import Corrupt, RecordError
from neardup.log import Output, Record
from neardup.messages import wire
from neardup.messages.wire import Schema
from neardup.types import DeadLetter

MOST_DETAIL: Final = 2000
"""Maximum length of `detail` in characters: error messages quote their input, and a dead letter must fit its topic."""
_SCHEMA: Final = Schema("dead-letter", 1)


class Rejection(NamedTuple):
    """A record that a stage could not use, and the reason."""

    record: Record
    error: RecordError


def dead_letters(rejected: Sequence[Rejection], stage: str, topic: str) -> list[Output]:
    """Return one output per rejection."""
    return [Output(topic, None, None, encode(_dead_letter(each, stage))) for each in rejected]


def encode(letter: DeadLetter) -> bytes:
    """Encode a dead letter for its topic."""
    return wire.encode(
        _SCHEMA, {name: getattr(letter, name) for name in DeadLetter.__slots__ if name != "headers"}
        | {"headers": [list(pair) for pair in letter.headers]},
    )  # fmt: skip


def decode(value: bytes | None) -> DeadLetter:
    """Decode a dead letter. Raises WireError."""
    body: dict[str, Any] = wire.decode(value, _SCHEMA)
    try:
        # Kafka allows a header without a value. memoryview rejects a number; bytes(n) would return n zero bytes.
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
