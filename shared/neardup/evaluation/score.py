"""Precision and recall of verdicts against the known truth of a sample crawl, in total and by kind of page.

A page counts as *found* when its last verdict is duplicate and refers to a page of the right group. A group is a first
page, all pages that descend from it, and pages that completely contain one of these. A verdict that refers to another
group is a false alarm, and the page also counts as missed. Borderline pages and pages that should be skipped are not
scored.

Results are also split into same host and cross host. For a duplicate, the other host is that of the page that it truly
repeats. For a false alarm, it is that of the page to which the verdict refers.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from neardup.errors import InvalidTruth, InvalidVerdict
from neardup.sample.truth import Truth
from neardup.types import DocumentId, Kind, Verdict
from neardup.util.urls import host_or_url

ALL: Final = "all"
SAME_HOST: Final = "same host"
CROSS_HOST: Final = "cross host"


@dataclass(slots=True)
class Tally:
    """Counts for one kind of page, or for all pages."""

    pages: int = 0
    duplicates: int = 0
    found: int = 0
    wrong_group: int = 0
    false_alarms: int = 0
    """Number of pages wrongly called duplicates. Verdicts that refer to a wrong group are counted separately."""
    without_verdict: int = 0

    @property
    def precision(self) -> float | None:
        """Share of predicted duplicates that are right, or None if no duplicate was predicted."""
        called = self.found + self.wrong_group + self.false_alarms
        return self.found / called if called else None

    @property
    def recall(self) -> float | None:
        """Share of duplicates that were found, or None if there are no duplicates."""
        return self.found / self.duplicates if self.duplicates else None


@dataclass(frozen=True, slots=True)
class Score:
    """The result. `kinds` has an entry per scored kind, and `not_scored` counts the other pages.

    `hosts` has an entry for duplicates and false alarms on one host, and one for those across two hosts.
    """

    total: Tally = field(default_factory=Tally)
    kinds: dict[str, Tally] = field(default_factory=dict)
    not_scored: int = 0
    hosts: dict[str, Tally] = field(default_factory=dict)


def score(verdicts: Iterable[Verdict], truths: Iterable[Truth]) -> Score:
    """Score verdicts in any order. Among several verdicts on a document, the one with the highest revision counts.

    A document is matched with the truth by its offset if all documents are in partition 0, otherwise by URL and fetch
    time. Raises InvalidTruth or InvalidVerdict if verdicts and truth describe different pages.
    """
    known = _numbered(truths)
    last: dict[str, Verdict] = {}
    for verdict in verdicts:
        if verdict.document not in last or verdict.revision >= last[verdict.document].revision:
            last[verdict.document] = verdict
    numbers = _page_numbers(last, known)
    by_number = {numbers[document]: verdict for document, verdict in last.items()}
    groups = [_groups(truth, known) for truth in known]

    total, kinds, hosts, not_scored = Tally(), dict[str, Tally](), dict[str, Tally](), 0
    for truth in known:
        if truth.skipped or truth.duplicate is None:
            not_scored += 1
            continue
        given = by_number.get(truth.number)
        target = _target(given, numbers) if given is not None and given.verdict is Kind.DUPLICATE else None
        tallies = [total, kinds.setdefault(truth.kind, Tally())]
        other = truth.duplicate_of if truth.duplicate else target
        if other is not None:
            tallies.append(hosts.setdefault(_hosts(truth, known[other]), Tally()))
        for tally in tallies:
            tally.pages += 1
            tally.without_verdict += given is None
            if truth.duplicate:
                tally.duplicates += 1
                if target is not None:
                    right = not groups[truth.number].isdisjoint(groups[target])
                    tally.found += right
                    tally.wrong_group += not right
            elif target is not None:
                tally.false_alarms += 1
    return Score(total, kinds, not_scored, hosts)


def _hosts(page: Truth, other: Truth) -> str:
    return SAME_HOST if host_or_url(page.url) == host_or_url(other.url) else CROSS_HOST


def _numbered(truths: Iterable[Truth]) -> list[Truth]:
    known = sorted(truths, key=lambda truth: truth.number)
    for place, truth in enumerate(known):
        if truth.number != place:
            raise InvalidTruth(f"expected one truth per page, numbered from 0, got {truth.number} for page {place}")
        for earlier in (*truth.holds, *(() if truth.duplicate_of is None else (truth.duplicate_of,))):
            if not 0 <= earlier < truth.number:
                raise InvalidTruth(f"page {truth.number}: expected duplicate_of to be an earlier page, got {earlier}")
    return known


def _groups(truth: Truth, known: list[Truth]) -> set[int]:
    """Return the first pages of the groups to which a verdict on a page may refer.

    These are its own group and the groups of pages that it contains.
    """
    return {_first(truth.number, known), *(_first(held, known) for held in truth.holds)}


def _first(number: int, known: list[Truth]) -> int:
    while (earlier := known[number].duplicate_of) is not None:
        number = earlier
    return number


def _page_numbers(last: dict[str, Verdict], known: list[Truth]) -> dict[str, int]:
    """Return page numbers by document."""
    places = {document: _place(document) for document in last}
    if all(partition == 0 for partition, _ in places.values()):
        numbers = {document: offset for document, (_, offset) in places.items()}
    else:
        by_fetch = {(truth.url, truth.fetched_at): truth.number for truth in known}
        numbers = {name: by_fetch.get((each.url, each.fetched_at or ""), len(known)) for name, each in last.items()}
    for document, number in numbers.items():
        url = last[document].url
        if number >= len(known) or known[number].url != url:
            expected = known[number].url if number < len(known) else f"one of {len(known)} pages"
            raise InvalidTruth(
                f"document {document}: expected {expected}, as in the truth, got a verdict on {url}; use the truth of "
                "this crawl"
            )
    return numbers


def _place(document: str) -> tuple[int, int]:
    try:
        return DocumentId.parse(document)
    except ValueError as error:
        raise InvalidVerdict(f"document: {error}") from error


def _target(verdict: Verdict, numbers: dict[str, int]) -> int:
    if verdict.duplicate_of is None:
        raise InvalidVerdict(f"document {verdict.document}: expected a duplicate with duplicate_of, got null")
    document = verdict.duplicate_of.document
    if document not in numbers:
        raise InvalidVerdict(
            f"document {verdict.document}: expected a verdict on {document}, to which it refers, got none; give the "
            "verdicts on all pages"
        )
    return numbers[document]
