"""Decisions about pages by page number: the relation of each page to an earlier page."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from neardup.errors import WrongState
from neardup.matching.match import RELATIONS
from neardup.offline.clusters.copies import COPY_RELATIONS
from neardup.offline.corpus.columns import UNIQUE, ColumnStore
from neardup.replay.recorded import sketched_rows
from neardup.signatures.packed_sketch import compare
from neardup.types import DocumentId, Kind, Verdict

NOT_SETTLED: Final = -2
"""Relation of a page without a decision: skipped, rejected or unknown."""
NO_MATCH: Final = -1
UNKNOWN: Final = float("nan")


@dataclass(frozen=True, slots=True)
class Outcome:
    """Decisions as columns, one row per page.

    `relation` is an index into RELATIONS, UNIQUE or NOT_SETTLED; `match` is the matched page or NO_MATCH.
    `resemblance`, `containment` and `hamming` compare the two pages. They are NaN if there is no match or the samples
    are too small.
    """

    relation: NDArray[np.int8]
    match: NDArray[np.int64]
    resemblance: NDArray[np.float64]
    containment: NDArray[np.float64]
    hamming: NDArray[np.float64]

    @classmethod
    def empty(cls, pages: int) -> "Outcome":
        """Create an outcome without decisions."""
        shares = (np.full(pages, UNKNOWN) for _ in range(3))
        return cls(np.full(pages, NOT_SETTLED, np.int8), np.full(pages, NO_MATCH, np.int64), *shares)

    def record(self, verdicts: Iterable[Verdict]) -> None:
        """Record verdicts on pages of partition 0. A later verdict on a page replaces an earlier one."""
        for each in verdicts:
            if each.verdict is Kind.SKIPPED:
                continue
            page = _number(each.document)
            self.relation[page] = UNIQUE
            if each.relation is not None and each.duplicate_of is not None:
                self.relation[page] = RELATIONS.index(each.relation)
                self.match[page] = _number(each.duplicate_of.document)
            for name in ("resemblance", "containment", "hamming"):
                value = getattr(each, name)
                getattr(self, name)[page] = UNKNOWN if value is None else value


def recorded_outcome(corpus: ColumnStore, number: NDArray[np.int64], pages: int) -> Outcome:
    """Return the first decisions of the stream; `number` has the page number of each row.

    Raises WrongState if documents are missing.
    """
    found = Outcome.empty(pages)
    found.relation[number] = corpus.relation
    by_id = dict(zip(map(tuple, corpus.id.tolist()), range(len(corpus)), strict=True))
    sketched = sketched_rows(corpus)
    for row in np.flatnonzero(corpus.relation != UNIQUE).tolist():
        earlier = by_id.get(tuple(corpus.match[row].tolist()))
        if earlier is None:
            raise WrongState(
                f"{corpus.url(row)}: expected the document that it duplicates, {corpus.match[row].tolist()}, in the "
                "corpus, got none; wait until the run that writes the corpus has finished"
            )
        page = number[row]
        found.match[page] = number[earlier]
        found.hamming[page] = (int(corpus.fingerprint[row]) ^ int(corpus.fingerprint[earlier])).bit_count()
        if RELATIONS[corpus.relation[row]] in COPY_RELATIONS:
            found.resemblance[page] = found.containment[page] = 1.0
            continue
        likeness = compare(corpus.sketch(int(sketched[row])), corpus.sketch(int(sketched[earlier])))
        found.resemblance[page] = likeness.resemblance
        found.containment[page] = UNKNOWN if likeness.a_in_b is None else likeness.a_in_b
    return found


def _number(document: str) -> int:
    return DocumentId.parse(document)[1]
