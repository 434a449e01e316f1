"""Encoding and decoding of messages by the name of their kind, as in a program outside the project."""

import importlib
import pkgutil
from typing import Any

from neardup import messages
from neardup.messages import wire
from neardup.messages.wire import Schema


def _schemas() -> dict[str, Schema]:
    names = [module.name for module in pkgutil.iter_modules(messages.__path__)]
    modules = [importlib.import_module(f"neardup.messages.{name}") for name in names]
    found = [value for module in modules for value in vars(module).values() if isinstance(value, Schema)]
    return {schema.kind: schema for schema in found}


SCHEMAS = _schemas()
"""The schema of every kind that any module of `neardup.messages` declares."""
VERSIONS = dict(SCHEMAS.values())


def encode(kind: str, body: dict[str, Any]) -> bytes:
    """Pack a body as a message of this kind."""
    return wire.encode(SCHEMAS[kind], body)


def decode(value: bytes | None, kind: str) -> dict[str, Any]:
    """Unpack the body of a message that must be of this kind."""
    return wire.decode(value, SCHEMAS[kind])
