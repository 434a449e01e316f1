"""Message formats, and readers that look up the format of a message by its kind.

Each message module declares a `Format` per kind of message. `registry.py` lists the formats that each topic carries.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from neardup.messages import wire
from neardup.messages.fields import require_plan
from neardup.messages.wire import Body, Schema

M = TypeVar("M")
M_co = TypeVar("M_co", covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageContext:
    """The deployment that messages are validated against."""

    plan: str
    """Digest of the plan."""
    generation: int
    partitions: int
    """Number of shard partitions."""
    owners: int
    mips: int
    """MIPs values per sketch."""


@dataclass(frozen=True, slots=True)
class Format(Generic[M_co]):
    """One kind of message: its schema, its reader, and whether its meaning depends on the plan.

    `read` turns the body of a message into a typed value. It raises a WireError for a body that does not fit.
    """

    schema: Schema
    read: Callable[[Body, MessageContext], M_co]
    needs_plan: bool = True


class MessageRegistry(Generic[M]):
    """The formats of the messages on one topic."""

    def __init__(self, *formats: Format[M]) -> None:
        self._formats = {each.schema.kind: each for each in formats}
        self._versions = dict(each.schema for each in formats)

    def read(self, data: bytes | None, context: MessageContext) -> M:
        """Decode a message of any registered kind.

        Raises a WireError for data that is not such a message, and WrongPlan for a message of another plan.
        """
        kind, body = wire.decode_any(data, self._versions)
        found = self._formats[kind]
        if found.needs_plan:
            require_plan(body, context.plan)
        return found.read(body, context)
