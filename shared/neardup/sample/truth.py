"""What is known of each page of a made crawl, and the files that carry it.

**What counts as a duplicate.** A page is a duplicate of an earlier one when its main text, which is the article without
navigation, ads, counters and dates, has a resemblance of .8 or more with the earlier one's (sets of shingles of three
words), or is contained in it at .9 or more. Made pages stay clear of that border: `duplicate` is true from .86 on and
false up to .5; between them, and for versions that drifted away from the first one, it is null and nobody is scored.

In scripts without spaces the words are those that the text was made of, where a reader sees only characters.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from neardup.errors import InvalidTruth

SKIPPED: Final = "skipped-"
"""How the kinds of pages begin that get no verdict of unique or duplicate: not text, empty, too short."""

SURELY_DUPLICATE: Final = 0.86
SURELY_OTHER: Final = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """The truth of one page.

    `duplicate_of` is the number of the earliest page that it repeats or descends from, `duplicate` whether it counts
    as a duplicate of that (null: borderline), `holds` the earlier pages whose whole text it has among other text.
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
        """Whether no verdict but "skipped" is right."""
        return self.kind.startswith(SKIPPED)


def is_duplicate(resemblance: float) -> bool | None:
    """Whether main texts with this resemblance are duplicates; null where one may say either."""
    if resemblance >= SURELY_DUPLICATE:
        return True
    return False if resemblance <= SURELY_OTHER else None


def write_truth(truth: Truth) -> bytes:
    """One line of a truth file."""
    fields = {name: getattr(truth, name) for name in Truth.__slots__}
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def read_truth(line: bytes) -> Truth:
    """Read one line. Raises InvalidTruth, and nothing else, whatever the bytes are."""
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InvalidTruth(f"expected a JSON object: {error}") from error
    if not isinstance(fields, dict):
        raise InvalidTruth(f"expected a JSON object, got a {type(fields).__name__}")
    for name, kinds in _FIELDS.items():
        value = fields.get(name)
        # bool is an int to Python, and not to us
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            got = "nothing" if name not in fields else json.dumps(value)[:40]
            expected = " or ".join(_TYPE_NAMES[kind] for kind in kinds)
            raise InvalidTruth(f"{name}: expected {expected}, got {got}")
    held = fields.get("holds") or []
    if not isinstance(held, list) or not all(type(each) is int for each in held):
        raise InvalidTruth(f"holds: expected a list of numbers, got {json.dumps(held)[:40]}")
    return Truth(**{name: fields[name] for name in _FIELDS}, holds=tuple(held))


def truths_in(path: Path) -> Iterator[tuple[int, Truth]]:
    """Lines of a truth file with their numbers. Raises InvalidTruth with file and line, and OSError."""
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
