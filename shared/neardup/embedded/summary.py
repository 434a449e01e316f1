"""The summary of a run: counts, duplicate bytes, and the hosts with most duplicates."""

from array import array
from collections import Counter
from dataclasses import dataclass
from typing import Final, TypedDict

from neardup.types import DocumentId, Kind, Relation
from neardup.util.formatting import format_bytes
from neardup.util.urls import host_or_url

_KINDS: Final = (None, *Kind)
_RELATIONS: Final = (None, *Relation)


class VerdictFields(TypedDict):
    """The fields of a verdict in JSON that are counted."""

    document: str
    verdict: str
    relation: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Counts of the pages of a run by their last verdict."""

    pages: int
    bytes: int
    by_kind: dict[str, int]
    by_relation: dict[str, int]
    duplicate_bytes: int
    hosts: list[tuple[str, int]]
    rejected: int

    def as_dict(self) -> dict[str, object]:
        """Return the summary as values for JSON."""
        return {name: getattr(self, name) for name in self.__slots__}

    def lines(self) -> list[str]:
        """Return the summary as lines of text."""
        counts = ", ".join(f"{count:,} {kind}" for kind, count in self.by_kind.items() if count)
        relations = ", ".join(f"{count:,} {relation}" for relation, count in self.by_relation.items() if count)
        share = self.duplicate_bytes / self.bytes if self.bytes else 0.0
        lines = [f"{self.pages:,} pages: {counts or 'nothing'}"]
        if relations:
            lines.append(f"duplicates: {relations}")
        total, duplicate = format_bytes(self.bytes), format_bytes(self.duplicate_bytes)
        lines.append(f"bytes: {total}, of which {duplicate} ({share:.0%}) are duplicates")
        if self.rejected:
            lines.append(f"not usable: {self.rejected:,}")
        if self.hosts:
            lines.append("hosts with most duplicates:")
            lines += [f"  {host}: {count:,}" for host, count in self.hosts]
        return lines


class Tally:
    """Counters of a run, a few bytes per page. `first` is the number of the first page of the run."""

    def __init__(self, first: int) -> None:
        self._first = first
        self._sizes = array("q")
        self._hosts = array("q")
        self._kinds = bytearray()
        self._relations = bytearray()
        self._host_numbers: dict[str, int] = {}
        self.rejected = 0

    def add_page(self, url: str, size: int) -> None:
        """Add the next page of the run."""
        self._hosts.append(self._host_numbers.setdefault(host_or_url(url), len(self._host_numbers)))
        self._sizes.append(size)
        self._kinds.append(0)
        self._relations.append(0)

    def add_verdict(self, verdict: VerdictFields) -> None:
        """Count a verdict. The last verdict on a page counts, and verdicts on pages of earlier runs are ignored."""
        number = DocumentId.parse(verdict["document"])[1] - self._first
        if 0 <= number < len(self._kinds):
            self._kinds[number] = _KINDS.index(verdict["verdict"])
            self._relations[number] = _RELATIONS.index(verdict["relation"])

    def summary(self, most_hosts: int = 5) -> Summary:
        """Return the summary of all counts."""
        kinds, relations = Counter(self._kinds), Counter(self._relations)
        duplicate = _KINDS.index(Kind.DUPLICATE)
        copies = [number for number, kind in enumerate(self._kinds) if kind == duplicate]
        names = list(self._host_numbers)
        hosts = Counter(self._hosts[number] for number in copies).most_common(most_hosts)
        return Summary(
            pages=len(self._kinds),
            bytes=sum(self._sizes),
            by_kind={str(kind): kinds[_KINDS.index(kind)] for kind in Kind},
            by_relation={str(relation): relations[_RELATIONS.index(relation)] for relation in Relation},
            duplicate_bytes=sum(self._sizes[number] for number in copies),
            hosts=[(names[host], count) for host, count in hosts],
            rejected=self.rejected,
        )
