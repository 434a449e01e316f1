"""Changes of pages between crawls (Broder 1997, "Characterizing how pages change over time").

Every document of a URL is compared with the one fetched before it:

| the later version | change |
|---|---|
| has the same bytes | unchanged |
| has the same words | same-text |
| resembles the earlier one like a near-duplicate | near |
| otherwise | changed |
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby, pairwise
from typing import Final

from neardup.matching.rule import Thresholds
from neardup.offline.corpus.columns import ColumnStore
from neardup.offline.queries.index_reader import Entry
from neardup.offline.queries.relation import relation_between
from neardup.types import Relation
from neardup.util.urls import host_or_url

TENTHS: Final = 10


class Change(StrEnum):
    """Kinds of change from one version to the next, the smallest first."""

    UNCHANGED = "unchanged"
    SAME_TEXT = "same-text"
    NEAR = "near"
    CHANGED = "changed"


_CHANGE_OF: Final = {
    Relation.IDENTICAL: Change.UNCHANGED,
    Relation.SAME_TEXT: Change.SAME_TEXT,
    Relation.SAME_SHINGLES: Change.NEAR,
    Relation.NEAR: Change.NEAR,
    None: Change.CHANGED,
}


@dataclass(frozen=True, slots=True)
class Version:
    """A document of a URL and its change from the previous version. The change is None for the first version."""

    document: str
    fetched_at: str | None
    size: int
    cluster: str
    change: Change | None
    resemblance: float | None


@dataclass(frozen=True, slots=True)
class History:
    """The documents of a URL in the order of fetching."""

    url: str
    versions: list[Version]


@dataclass(frozen=True, slots=True)
class ChangingHost:
    """Counts of a host: URLs with several documents, versions of these URLs, and changes of the text."""

    name: str
    urls: int
    versions: int
    changes: int


@dataclass(frozen=True, slots=True)
class ChangeSummary:
    """Changes over all URLs with several documents.

    Pairs of successive versions are counted by change and by tenths of resemblance; the last tenth includes 1. `hosts`
    is sorted by changes of the text in descending order.
    """

    urls: int
    pairs: int
    by_change: dict[str, int]
    by_resemblance: list[int]
    hosts: list[ChangingHost]


def history_of(documents: ColumnStore, entries: Sequence[Entry], thresholds: Thresholds) -> History:
    """Return the history of one URL from one or more documents in any order. Raises StateError."""
    ordered = sorted(entries, key=lambda each: (each.fetched, each.id))
    versions = [_version(ordered[0], None, None)]
    for before, after in pairwise(ordered):
        relation, resemblance = relation_between(documents, before, after, thresholds)
        versions.append(_version(after, _CHANGE_OF[relation], resemblance))
    return History(ordered[0].url, versions)


def summarise(
    documents: ColumnStore, entries: Iterable[Entry], thresholds: Thresholds, most_hosts: int = 10
) -> ChangeSummary:
    """Summarise all URLs with several documents. `entries` must be grouped by URL.

    Memory grows with the number of hosts, not with the number of URLs.
    """
    by_change: Counter[str] = Counter()
    by_resemblance = [0] * TENTHS
    urls: Counter[str] = Counter()
    versions: Counter[str] = Counter()
    changes: Counter[str] = Counter()
    for url, some in groupby(entries, key=lambda each: each.url):
        history = history_of(documents, list(some), thresholds)
        if len(history.versions) < 2:  # The URL was selected because another URL has the same hash.
            continue
        host = host_or_url(url)
        urls[host] += 1
        versions[host] += len(history.versions)
        for version in history.versions[1:]:
            by_change[str(version.change)] += 1
            changes[host] += version.change in (Change.NEAR, Change.CHANGED)
            if version.resemblance is not None:
                by_resemblance[min(int(version.resemblance * TENTHS), TENTHS - 1)] += 1
    first = sorted(urls, key=lambda host: (-changes[host], -versions[host], host))[:most_hosts]
    return ChangeSummary(
        urls.total(),
        by_change.total(),
        {str(change): by_change[change] for change in Change},
        by_resemblance,
        [ChangingHost(host, urls[host], versions[host], changes[host]) for host in first],
    )


def _version(entry: Entry, change: Change | None, resemblance: float | None) -> Version:
    shown = None if resemblance is None else round(resemblance, 4)
    return Version(entry.document, entry.fetched_at, entry.size, entry.cluster, change, shown)
