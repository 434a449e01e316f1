"""The rights that deploy/docs/operations/broker-rights.md lists, and a broker on which tests grant and revoke them."""

import importlib
import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from neardup.settings import Settings

rdkafka: Any = importlib.import_module("confluent_kafka.admin")  # its type hints do not declare what it exports
BROKER_RIGHTS = (Path(__file__).parents[2] / "deploy/docs/operations/broker-rights.md").read_text()
GRANTS = [line for line in BROKER_RIGHTS.splitlines() if line.startswith("kafka-acls ")]


def acl_of(grant: str) -> Any:
    """Parse a `kafka-acls` line of the document."""
    words = shlex.split(grant)[1:]
    assert words.pop(0) == "--add"
    options = dict(zip(words[::2], words[1::2], strict=True))
    kind = "topic" if "--topic" in options else "group"
    name = options.pop(f"--{kind}")
    pattern = options.pop("--resource-pattern-type", "literal").upper()
    principal, operation = options.pop("--allow-principal"), options.pop("--operation")
    assert options == {}
    spelled = "".join(f"_{letter}" if letter.isupper() else letter for letter in operation).strip("_").upper()
    return rdkafka.AclBinding(
        rdkafka.ResourceType[kind.upper()], name, rdkafka.ResourcePatternType[pattern], principal, "*",
        rdkafka.AclOperation[spelled], rdkafka.AclPermissionType.ALLOW,
    )  # fmt: skip


def filter_of(acl: Any) -> Any:
    return rdkafka.AclBindingFilter(
        acl.restype, acl.name, acl.resource_pattern_type, acl.principal, acl.host, acl.operation, acl.permission_type
    )


class Rights:
    """Grants and revokes rights, and waits until the broker has applied the change."""

    def __init__(self, settings: Settings) -> None:
        self._admin = rdkafka.AdminClient({
            "bootstrap.servers": settings.broker, "security.protocol": "SASL_SSL", "ssl.ca.location": settings.tls_ca,
            "sasl.mechanism": settings.sasl_mechanism, "sasl.username": settings.sasl_username,
            "sasl.password": settings.sasl_password, "log_level": 0,
        })  # fmt: skip

    def grant(self, grants: list[str]) -> None:
        acls = [acl_of(each) for each in grants]
        for done in self._admin.create_acls(acls).values():
            done.result(20)
        for acl in acls:
            self._await(acl, there=True)

    @contextmanager
    def without(self, grant: str) -> Iterator[None]:
        acl = acl_of(grant)
        for done in self._admin.delete_acls([filter_of(acl)]).values():
            assert len(done.result(20)) == 1
        self._await(acl, there=False)
        yield
        self.grant([grant])

    def _await(self, acl: Any, *, there: bool) -> None:
        deadline = time.monotonic() + 20
        while bool(self._admin.describe_acls(filter_of(acl)).result(20)) is not there:
            assert time.monotonic() < deadline, f"the broker has not applied the change of {acl}"
            time.sleep(0.05)
