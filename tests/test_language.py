"""The prose of the project avoids some openers and phrases; CONTRIBUTING has the rules and better words.

`python -m tests.test_language` counts the offences per package, `python -m tests.test_language PACKAGE` lists them.
"""

import re
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache

import pytest

from tests.support.prose import Kind, Prose, all_prose, prose_of_module

OPENERS = re.compile(r"(What|How|Of|Those|Whether|Where|Who|Whose|The same|As many|Some|So many)\b")
"""Openers of a docstring that make its first line a fragment."""

PHRASES = {
    r"at rest": "idle",
    r"anew": "again, or rebuild",
    r"(goes|go|going|went) on(?! the)": "continue, resume",
    r"so many|so much": "at most n",
    r"dear(er|est)?": "expensive",
    r"oftener": "more often",
    r"in hand": "in flight",
    r"tells?": "emit, report, state",
    r"told": "reported, emitted",
    r"says?": "state, report",
    r"said": "reported, stated",
    r"knows": "stores, has, records",
    r"hears?|heard": "receive",
    r"speaks?": "emit, use",
    r"asks|(is|are|was|were|be|been|being) asked": "query, request",
    r"(?:^|(?<=[.;:(] ))who\b|\b(?:to|only|of|by|and|or|from|than|for|but|as|is) who": "the caller, or a noun",
    r"(?:workers?|services?|shards?|owners?|aggregators?|featurizers?|process(?:es)?|programs?|stages?|brokers?|threads?"
    r"|members?|partitions?|tables?|index|messages?|records?|kernels?|ones?) who": "that",
    r"whoever": "the caller, or a noun",
}
"""Phrases that need to be read twice, each with better words."""

ALLOWED: dict[tuple[str, str], str] = {
    ("shared/neardup/text/languages.py", "said"): "a stop word",
}
"""Exceptions by file and phrase, each with the reason."""

_FORBIDDEN = {re.compile(rf"\b(?:{phrase})\b", re.IGNORECASE): better for phrase, better in PHRASES.items()}


def offences_in(prose: Prose) -> Iterator[tuple[str, str]]:
    """Yield the forbidden openers and phrases of a text, each with better words."""
    if prose.kind is Kind.DOCSTRING and (opener := OPENERS.match(prose.text)):
        yield opener[0], "a sentence in the imperative, or a noun phrase that stands alone"
    for pattern, better in _FORBIDDEN.items():
        yield from ((match[0], better) for match in pattern.finditer(prose.text))


@cache
def offences() -> dict[str, list[str]]:
    """Return the offences of the whole project by package, without those that are allowed."""
    found: dict[str, list[str]] = {}
    for prose in all_prose():
        lines = found.setdefault(prose.package, [])
        for phrase, better in offences_in(prose):
            if (prose.path, phrase.lower()) not in ALLOWED:
                lines.append(f"{prose.path}:{prose.line}: {prose.kind.value} with {phrase!r}; better: {better}")
    return found


@pytest.mark.parametrize("package", sorted(offences()))
def test_the_prose_of_a_package_avoids_the_forbidden_phrases(package: str) -> None:
    found = offences()[package]
    assert not found, "\n".join(found)


def test_every_exception_is_needed() -> None:
    used = {(prose.path, phrase.lower()) for prose in all_prose() for phrase, _ in offences_in(prose)}
    assert not ALLOWED.keys() - used


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('"""What an owner has to say."""', {"What", "say"}),
        ('def f():\n    """Of messages: the sizes."""', {"Of"}),
        ('class A:\n    x: int\n    """The same for x."""', {"The same"}),
        ('raise ValueError(f"{x} tells too much")', {"tells"}),
        ("x = 1  # The log says so, and goes\n# on for ever", {"says", "goes on"}),
        ('"""Return a worker who holds the key."""', {"worker who"}),
        ('"""Return a table for who reads it."""', {"for who"}),
        ('x = f"{path} is made anew at rest"', {"anew", "at rest"}),
    ],
)
def test_an_offence_is_found(source: str, expected: set[str]) -> None:
    assert {phrase for prose in prose_of_module("x.py", source) for phrase, _ in offences_in(prose)} == expected


@pytest.mark.parametrize(
    "source",
    [
        '"""Return the `told` of users who read it."""',
        '"""Some_name is fine, and so is essay."""',
        '"""Operators of a crawler who want a verdict."""',
        'x = "tells"',
        "# Without the caller, and with the rest.",
    ],
)
def test_plain_prose_is_accepted(source: str) -> None:
    assert [each for prose in prose_of_module("x.py", source) for each in offences_in(prose)] == []


if __name__ == "__main__":
    if sys.argv[1:]:
        print("\n".join(line for package in sys.argv[1:] for line in offences()[package]))
    else:
        docstrings = Counter(prose.package for prose in all_prose() if prose.kind is Kind.DOCSTRING)
        fragments = {name: sum("a sentence in" in line for line in lines) for name, lines in offences().items()}
        print("package                              docstrings  fragments  phrases")
        for name, lines in sorted(offences().items(), key=lambda item: -len(item[1])):
            print(f"{name:36} {docstrings[name]:10} {fragments[name]:10} {len(lines) - fragments[name]:8}")
        counted = docstrings.total(), sum(fragments.values()), sum(map(len, offences().values()))
        print(f"{'all':36} {counted[0]:10} {counted[1]:10} {counted[2] - counted[1]:8}")
