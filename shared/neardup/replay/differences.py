"""Differences between two outcomes.

A page that one outcome calls unique and the other a duplicate is a **difference**. A page that both call a duplicate,
but of different pages or with different relations, is counted separately, because timing can decide which of several
earlier pages is reported.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from neardup.matching.match import RELATIONS
from neardup.offline.corpus.columns import UNIQUE
from neardup.replay.outcome import NO_MATCH, NOT_SETTLED, Outcome
from neardup.types import PageRef

_NAMES: Final = {NOT_SETTLED: "skipped", UNIQUE: "unique", **{n: str(each) for n, each in enumerate(RELATIONS)}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A page with both decisions, and the earlier page of which one outcome calls it a duplicate.

    The values compare these two pages, with the signatures of that outcome.
    """

    page: int
    was: str
    now: str
    other: int | None
    resemblance: float | None
    containment: float | None
    hamming: float | None


@dataclass(frozen=True, slots=True)
class Differences:
    """All differences by change. `still_duplicates` counts duplicates with another match, by both relations."""

    pages: int
    was: dict[str, int]
    now: dict[str, int]
    found: dict[tuple[str, str], list[Difference]]
    still_duplicates: dict[tuple[str, str], int]

    @property
    def count(self) -> int:
        """Number of pages with a different decision."""
        return sum(map(len, self.found.values()))

    def as_dict(self, pages: Sequence[PageRef], examples: int) -> dict[str, object]:
        """Return values for JSON, with up to `examples` of each change. `pages` are indexed by page number."""

        def named(each: Difference) -> dict[str, object]:
            other = None if each.other is None else asdict(pages[each.other])
            return asdict(each) | {"page": asdict(pages[each.page]), "other": other}

        return {
            "pages": self.pages,
            "was": self.was,
            "now": self.now,
            "different": self.count,
            "changes": [{"was": a, "now": b, "pages": len(each)} for (a, b), each in self.found.items()],
            "told_otherwise": [{"was": a, "now": b, "pages": n} for (a, b), n in self.still_duplicates.items()],
            "examples": [named(each) for some in self.found.values() for each in some[:examples]],
        }


def differences(was: Outcome, now: Outcome) -> Differences:
    """Compare two outcomes of the same pages. The most frequent changes come first, pages in their order."""
    assert was.relation.size == now.relation.size
    kinds = (_kind(was.relation), _kind(now.relation))
    changed = kinds[0] != kinds[1]
    found: dict[tuple[str, str], list[Difference]] = {}
    for page in np.flatnonzero(changed).tolist():
        each = _difference(was, now, page)
        found.setdefault((each.was, each.now), []).append(each)
    moved = ~changed & ((was.match != now.match) | (was.relation != now.relation))
    still_duplicates = Counter(
        (_NAMES[int(was.relation[page])], _NAMES[int(now.relation[page])]) for page in np.flatnonzero(moved)
    )
    return Differences(
        was.relation.size,
        _counts(was),
        _counts(now),
        dict(sorted(found.items(), key=lambda item: -len(item[1]))),
        dict(still_duplicates.most_common()),
    )


def _difference(was: Outcome, now: Outcome, page: int) -> Difference:
    source = was if was.match[page] != NO_MATCH else now  # At most one of the two calls the page a duplicate.
    other = int(source.match[page])
    return Difference(
        page=page,
        was=_NAMES[int(was.relation[page])],
        now=_NAMES[int(now.relation[page])],
        other=None if other == NO_MATCH else other,
        resemblance=_rounded(source.resemblance[page]),
        containment=_rounded(source.containment[page]),
        hamming=_rounded(source.hamming[page]),
    )


def _rounded(figure: float) -> float | None:
    return None if np.isnan(figure) else round(float(figure), 4)


def _kind(relation: NDArray[np.int8]) -> NDArray[np.int8]:
    """Map relations to -2 (no decision), -1 (unique) and 0 (duplicate)."""
    return np.minimum(relation, 0)


def _counts(outcome: Outcome) -> dict[str, int]:
    places, counts = np.unique(outcome.relation, return_counts=True)
    return {_NAMES[place]: count for place, count in zip(places.tolist(), counts.tolist(), strict=True)}
