"""Environment variables that look like settings but are not.

A misspelt setting would otherwise be ignored and the default value used. Exempt are `NEARDUP_TEST_*`, which
configure the test suite, and the variables with which Kubernetes announces a Service called `neardup` or `neardup-...`
to every pod of its namespace.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final

PREFIX: Final = "NEARDUP_"
TEST_PREFIX: Final = "NEARDUP_TEST_"
_MISSPELT: Final = 0.8
"""Minimum similarity (the ratio of difflib) to a setting for a name to count as misspelt."""

_SERVICE: Final = re.compile(r"NEARDUP_(\w+_)?SERVICE_(HOST|PORT(_\w+)?)")
_SERVICE_PORT: Final = re.compile(r"NEARDUP_(\w+_)?PORT(?P<number>_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?")


@dataclass(frozen=True, slots=True)
class UnknownVariable:
    """An unknown variable and the setting with the closest name. Its value may be secret, so it is not kept."""

    name: str
    closest: str
    misspelt: bool

    def __str__(self) -> str:
        if self.misspelt:
            return f"{self.name}: no setting has this name, did you mean {self.closest}? `neardup settings` lists them"
        return (
            f"{self.name}: no setting has this name, so the variable is ignored; the closest one is {self.closest}, "
            "`neardup settings` lists them"
        )


def find_unknown(environ: Mapping[str, str], known: Iterable[str]) -> list[UnknownVariable]:
    """Return the variables that seem to be meant for this program but are not `known`, sorted by name."""
    names = {each.removeprefix(PREFIX).lower() for each in known}
    found = []
    for variable, text in sorted(environ.items()):
        # A different case, a dash or a missing underscore counts as a misspelling, too.
        name = variable.lower().replace("-", "_").removeprefix(PREFIX[:-1].lower()).lstrip("_")
        if not variable.upper().startswith(PREFIX[:-1]) or (variable == PREFIX + name.upper() and name in names):
            continue
        if variable.startswith(TEST_PREFIX) or _is_service_link(variable, text):
            continue
        closest = closest_name(name, names)
        misspelt = is_misspelt(name, closest)
        # Without the underscore, the variable may belong to a program called neardupes.
        if misspelt or variable.startswith(PREFIX):
            found.append(UnknownVariable(variable, PREFIX + closest.upper(), misspelt))
    return found


def closest_name(name: str, names: Iterable[str]) -> str:
    """Return the most similar of some names."""
    return max(names, key=lambda each: (_similarity(name, each), each))


def is_misspelt(name: str, closest: str) -> bool:
    """Return whether a name is similar enough to `closest` to be a misspelling of it."""
    return _similarity(name, closest) >= _MISSPELT


def _similarity(name: str, other: str) -> float:
    return SequenceMatcher(None, name, other).ratio()


def _is_service_link(variable: str, text: str) -> bool:
    """Return whether Kubernetes set the variable to announce a Service."""
    if _SERVICE.fullmatch(variable):
        return True
    port = _SERVICE_PORT.fullmatch(variable)
    # NEARDUP_WEBB_PORT=6066 is a misspelling: the variable of a Service without a port number in its name holds a URL.
    return port is not None and (port["number"] is not None or "://" in text)
