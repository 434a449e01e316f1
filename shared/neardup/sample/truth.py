"""The truth about each page of a generated crawl, and its files.

**Definition of a duplicate.** A page is a duplicate of an earlier one when its main text has a resemblance of .8 or
more with the earlier main text (sets of shingles of three words), or is contained in it at .9 or more. The main text is
the article without navigation, ads, counters and dates. `duplicate` keeps a distance from this threshold: it is true
from a resemblance of .86 and false up to .5. Between these values, and for versions that drifted away from the first
one, `duplicate` is null and the page is not scored.

In scripts without spaces, the words are those from which the text was generated, although it shows no word boundaries.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from neardup.errors import InvalidTruth

SKIPPED: Final = "skipped-"
"""Prefix of kinds of pages without a verdict of unique or duplicate: not text, empty, too short."""

SURELY_DUPLICATE: Final = 0.86
SURELY_OTHER: Final = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """The truth about one page.

    `duplicate_of` is the number of the earlier page that this page repeats or was made from. `duplicate` is true if it
    counts as a duplicate of that page (null: borderline). `holds` lists the earlier pages whose whole text it contains
    among other text.
    """

    url: str
    number: int
    fetched_at: str
    kind: str
    duplicate_of: int | None = None
    duplicate: bool | None = False
    resemblance: float | None = None
    holds: tuple[int, ...] = ()

    @property
    def skipped(self) -> bool:
        """True if "skipped" is the only right verdict."""
        return self.kind.startswith(SKIPPED)


def is_duplicate(resemblance: float) -> bool | None:
    """Return whether two main texts with this resemblance are duplicates; None for borderline values."""
    if resemblance >= SURELY_DUPLICATE:
        return True
    return False if resemblance <= SURELY_OTHER else None


def write_truth(truth: Truth) -> bytes:
    """Serialize one line of a truth file."""
    fields = {name: getattr(truth, name) for name in Truth.__slots__}
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def read_truth(line: bytes) -> Truth:
    """Parse one line of a truth file. Raises only InvalidTruth, for any bytes."""
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InvalidTruth(f"expected a JSON object: {error}") from error
    if not isinstance(fields, dict):
        raise InvalidTruth(f"expected a JSON object, got a {type(fields).__name__}")
    for name, kinds in _FIELDS.items():
        value = fields.get(name)
        # In Python bool is an int, but a boolean is not a valid number here.
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            got = "nothing" if name not in fields else json.dumps(value)[:40]
            expected = " or ".join(_TYPE_NAMES[kind] for kind in kinds)
            raise InvalidTruth(f"{name}: expected {expected}, got {got}")
    held = fields.get("holds") or []
    if not isinstance(held, list) or not all(type(each) is int for each in held):
        raise InvalidTruth(f"holds: expected a list of numbers, got {json.dumps(held)[:40]}")
    return Truth(**{name: fields[name] for name in _FIELDS}, holds=tuple(held))


def truths_in(path: Path) -> Iterator[tuple[int, Truth]]:
    """Yield line numbers and lines of a truth file. Raises InvalidTruth with file and line, and OSError."""
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                try:
                    yield number, read_truth(line)
                except InvalidTruth as error:
                    raise InvalidTruth(f"{path}, line {number}: {error}") from error


_FIELDS: Final[dict[str, tuple[type[object], ...]]] = {
    "url": (str,),
    "number": (int,),
    "fetched_at": (str,),
    "kind": (str,),
    "duplicate_of": (int, type(None)),
    "duplicate": (bool, type(None)),
    "resemblance": (float, int, type(None)),
}
_TYPE_NAMES: Final = {str: "text", int: "a whole number", float: "a number", bool: "true or false", type(None): "null"}
