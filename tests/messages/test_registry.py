"""Tests of registries: the kinds that a topic carries, and the kinds that depend on the plan."""

import pytest

from neardup.errors import WrongKind, WrongPlan
from neardup.messages.formats import Format, MessageContext, MessageRegistry
from neardup.messages.wire import Schema
from tests.support.messages import encode

CONTEXT = MessageContext(plan="ours", generation=0, partitions=1, owners=1, mips=128)
BOUND = Format(Schema("answers", 2), lambda body, context: ("answers", body["a"], context.plan))
FREE = Format(Schema("control", 1), lambda body, context: ("control", body["a"], context.plan), needs_plan=False)
REGISTRY = MessageRegistry(BOUND, FREE)


@pytest.mark.parametrize("kind", ["answers", "control"])
def test_a_message_is_read_by_the_reader_of_its_kind(kind: str) -> None:
    assert REGISTRY.read(encode(kind, {"plan": "ours", "a": 7}), CONTEXT) == (kind, 7, "ours")


def test_only_kinds_that_depend_on_the_plan_are_refused_from_another_plan() -> None:
    with pytest.raises(WrongPlan, match="expected a message made with plan ours, got 'theirs'"):
        REGISTRY.read(encode("answers", {"plan": "theirs", "a": 7}), CONTEXT)
    assert REGISTRY.read(encode("control", {"plan": "theirs", "a": 7}), CONTEXT) == ("control", 7, "ours")


def test_an_unregistered_kind_is_refused_and_the_registered_ones_are_named() -> None:
    with pytest.raises(WrongKind, match="expected a 'answers' or 'control' message, got b'probes'"):
        REGISTRY.read(encode("probes", {"plan": "ours"}), CONTEXT)
