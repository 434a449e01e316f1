"""Counts of the last verdict on each document."""

from collections import Counter
from collections.abc import Collection

from neardup.types import Kind, Verdict


class VerdictCounts:
    """Counts documents by their last verdict, and measures the rate at which verdicts were emitted."""

    def __init__(self) -> None:
        self.last: dict[str, Kind] = {}
        self._timestamps: dict[str, tuple[int, int, int]] = {}

    def add(self, verdict: Verdict, timestamp: int) -> None:
        """Count a verdict, which replaces an earlier one on its document. `timestamp` is in milliseconds."""
        count, first, _ = self._timestamps.get(verdict.document, (0, timestamp, timestamp))
        self._timestamps[verdict.document] = (count + 1, first, timestamp)
        self.last[verdict.document] = verdict.verdict

    def summary(self, documents: Collection[str] | None = None) -> str:
        """Return one line with the counts and the rate of verdicts, for `documents` or for all documents."""
        chosen = self.last.keys() if documents is None else self.last.keys() & set(documents)
        kinds = Counter(self.last[document] for document in chosen)
        listed = ", ".join(f"{kinds[kind]:,} {kind}" for kind in Kind)
        times = [self._timestamps[document] for document in chosen]
        seconds = (max(last for *_, last in times) - min(first for _, first, _ in times)) / 1000 if times else 0.0
        rate = f"; {sum(count for count, *_ in times) / seconds:,.0f} verdicts per second" if seconds else ""
        return f"{len(chosen):,} documents: {listed}{rate}"
