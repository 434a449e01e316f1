"""Writer of verdict records: pages to the verdicts topic, canaries to the canaries topic.

Verdicts are built as dictionaries of fields, because there is one per page (see `messages.verdicts`).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Final

from neardup import metrics
from neardup.log import Output
from neardup.matching.found_by import FoundBy
from neardup.matching.match import Match
from neardup.messages.topics import Topics
from neardup.messages.verdicts import MatchFields, VerdictFields, write_fields
from neardup.stream.aggregator.owner import Outbox, SettledVerdict
from neardup.types import DocumentId, Kind, SkippedPage

SAME_FINGERPRINT: Final = "fingerprint"
"""Value of `found_by` for a page that no table found: its owner has another page with the same fingerprint."""
_CACHED_NAMES: Final = 1 << 12
"""Number of sets of tables whose names are cached. The cache needs a limit, because any subset of tables can occur."""
_NO_MATCH: Final[MatchFields] = {
    "duplicate_of": None,
    "relation": None,
    "same_url": False,
    "hamming": None,
    "resemblance": None,
    "containment": None,
    "found_by": (),
    "first_of_group": None,
}


class VerdictWriter:
    """Encodes the verdicts of one owner, and counts the verdicts on pages in the metrics.

    `names` returns the names of the tables and bands that found a page.
    """

    def __init__(
        self, topics: Topics, form: str, signature_version: str, names: Callable[[FoundBy], tuple[str, ...]]
    ) -> None:
        self._topics = topics
        self._form = form
        self._signature_version = signature_version
        self._names = lru_cache(_CACHED_NAMES)(names)

    def write(self, outbox: Outbox, now: float) -> list[Output]:
        """Return the verdicts of an outbox; `now` is in milliseconds, like the timestamps of pages."""
        pages = [page for page in outbox.skipped if not page.id.is_canary]
        verdicts = self._fields(pages, outbox.verdicts, now)
        _count(verdicts)
        canaries = [page for page in outbox.skipped if page.id.is_canary]
        return self._outputs(self._topics.verdicts, verdicts) + self._outputs(
            self._topics.canaries, self._fields(canaries, outbox.canary_verdicts, now)
        )

    def _fields(
        self, skipped: Iterable[SkippedPage], settled: Iterable[SettledVerdict], now: float
    ) -> list[VerdictFields]:
        return [
            *(self._fields_of_skipped(page, now) for page in skipped),
            *(self._fields_of_settled(each, now) for each in settled),
        ]

    def _outputs(self, topic: str, verdicts: Sequence[VerdictFields]) -> list[Output]:
        return [Output(topic, None, verdict["url"].encode(), write_fields(verdict, self._form)) for verdict in verdicts]

    def _fields_of_settled(self, settled: SettledVerdict, now: float) -> VerdictFields:
        document, match = settled.document, settled.match
        return {
            "url": document.url,
            "document": str(document.id),
            "fetched_at": document.fetched_at,
            "verdict": settled.kind,
            "revision": settled.revision,
            **(_NO_MATCH if match is None else self._fields_of_match(match, document.url)),
            "reason": document.note,
            "signature_version": self._signature_version,
            "latency_ms": _latency(document.id, now),
        }

    def _fields_of_match(self, match: Match, url: str) -> MatchFields:
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

    def _fields_of_skipped(self, page: SkippedPage, now: float) -> VerdictFields:
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


def _count(verdicts: Sequence[VerdictFields]) -> None:
    for (kind, relation), count in Counter((each["verdict"], each["relation"]) for each in verdicts).items():
        metrics.VERDICTS.labels(kind, relation or "none").inc(count)
    for each in verdicts:
        if each["revision"] == 0 and each["latency_ms"] is not None:
            metrics.VERDICT_SECONDS.observe(max(each["latency_ms"] / 1000, 0.0))
