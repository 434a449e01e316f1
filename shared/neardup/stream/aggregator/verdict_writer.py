"""What an owner has to say about pages, as verdicts: to the crawler, and those of canaries to who watches.

A verdict is written from its fields: there is one for every page, and an object would cost more than what it says.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, Final

from neardup import metrics
from neardup.log import Output
from neardup.matching.match import Match
from neardup.messages.topics import Topics
from neardup.messages.verdicts import write_fields
from neardup.stream.aggregator.owner import Outbox, SettledVerdict
from neardup.types import DocumentId, Kind, SkippedPage

SAME_FINGERPRINT: Final = "fingerprint"
"""What found a page that no table had to find: its owner has another with the same fingerprint."""
_NAMED: Final = 1 << 12
"""Sets of tables whose names are kept; every subset of them can occur."""
_NO_MATCH: Final[dict[str, Any]] = {
    "duplicate_of": None,
    "relation": None,
    "same_url": False,
    "hamming": None,
    "resemblance": None,
    "containment": None,
    "found_by": (),
    "first_of_group": None,
}
_Fields = dict[str, Any]
"""Of a `Verdict`, in their order."""


class VerdictWriter:
    """`names` has the tables of a mask. Counts the verdicts on pages in the metrics."""

    def __init__(
        self, topics: Topics, form: str, signature_version: str, names: Callable[[int], tuple[str, ...]]
    ) -> None:
        self._topics = topics
        self._form = form
        self._signature_version = signature_version
        self._names = lru_cache(_NAMED)(names)

    def outputs(self, outbox: Outbox, now: float) -> list[Output]:
        """The verdicts on what was skipped or settled; `now` in milliseconds, as the timestamps of pages."""
        pages = [page for page in outbox.skipped if not page.id.is_canary]
        verdicts = self._verdicts(pages, outbox.told, now)
        _count(verdicts)
        canaries = [page for page in outbox.skipped if page.id.is_canary]
        return self._written(self._topics.verdicts, verdicts) + self._written(
            self._topics.canaries, self._verdicts(canaries, outbox.canaries, now)
        )

    def _verdicts(self, skipped: Iterable[SkippedPage], told: Iterable[SettledVerdict], now: float) -> list[_Fields]:
        return [*(self._of_skipped(page, now) for page in skipped), *(self._of_settled(each, now) for each in told)]

    def _written(self, topic: str, verdicts: Sequence[_Fields]) -> list[Output]:
        return [Output(topic, None, verdict["url"].encode(), write_fields(verdict, self._form)) for verdict in verdicts]

    def _of_settled(self, told: SettledVerdict, now: float) -> _Fields:
        document, match = told.document, told.match
        return {
            "url": document.url,
            "document": str(document.id),
            "fetched_at": document.fetched_at,
            "verdict": told.kind,
            "revision": told.revision,
            **(_NO_MATCH if match is None else self._about(match, document.url)),
            "reason": document.note,
            "signature_version": self._signature_version,
            "latency_ms": _latency(document.id, now),
        }

    def _about(self, match: Match, url: str) -> _Fields:
        return {
            "duplicate_of": {"url": match.url, "document": str(match.id)},
            "relation": match.relation,
            "same_url": match.url == url,
            "hamming": match.hamming,
            "resemblance": match.resemblance,
            "containment": match.containment,
            "found_by": self._names(match.found_by) or (SAME_FINGERPRINT,),
            "first_of_group": {"url": match.group_url, "document": str(match.group)},
        }

    def _of_skipped(self, page: SkippedPage, now: float) -> _Fields:
        return {
            "url": page.url,
            "document": str(page.id),
            "fetched_at": page.fetched_at,
            "verdict": Kind.SKIPPED,
            "revision": 0,
            **_NO_MATCH,
            "reason": page.reason,
            "signature_version": self._signature_version,
            "latency_ms": _latency(page.id, now),
        }


def _latency(document: DocumentId, now: float) -> float | None:
    return None if document.is_canary else round(now - document.timestamp, 3)


def _count(verdicts: Sequence[_Fields]) -> None:
    for (kind, relation), count in Counter((each["verdict"], each["relation"]) for each in verdicts).items():
        metrics.VERDICTS.labels(kind, relation or "none").inc(count)
    for each in verdicts:
        if each["revision"] == 0 and each["latency_ms"] is not None:
            metrics.VERDICT_SECONDS.observe(max(each["latency_ms"] / 1000, 0.0))
