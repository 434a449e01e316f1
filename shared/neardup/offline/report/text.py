"""The report of an offline pass as text for a terminal and as JSON."""

import json
from dataclasses import asdict

from neardup.offline.report.html import html
from neardup.offline.report.report import Report
from neardup.util.formatting import format_bytes, format_seconds, printable

__all__ = ["as_json", "html", "text"]


def as_json(report: Report) -> str:
    """Return the report as one line of JSON. Hosts and phases are objects, and sizes of clusters are sorted."""
    fields = asdict(report) | {
        "sizes": dict(sorted(report.sizes.items())),
        "hosts": [host._asdict() for host in report.hosts],
        "phases": [phase._asdict() for phase in report.phases],
    }
    return json.dumps(fields)


def text(report: Report) -> str:
    """Return the report as lines of printable characters."""
    return "\n".join(printable(line) for line in _lines(report))


def _lines(report: Report) -> list[str]:
    lines = [
        f"{report.documents:,} documents ({report.new_documents:,} new): {report.clusters:,} clusters, the largest of "
        f"{report.largest:,}",
        f"not the first of their cluster: {report.identical:,} identical, {report.same_text:,} same-text, "
        f"{report.same_shingles:,} same-shingles, {report.near:,} near",
        f"contained in another: {report.contained:,}; verdicts overturned: {report.overturned:,}",
        f"pairs: {_counts(report.pairs)}; of these {report.edges:,} resemble each other",
    ]
    if any(report.common_keys.values()):
        lines.append(f"keys too common to use: {_counts(report.common_keys)}")
    lines.append(
        f"by the transitive rule: {report.transitive_clusters:,} clusters, the largest of {report.transitive_largest:,}"
    )
    if report.hosts:
        lines.append("hosts with most duplicates:")
        lines += [f"  {host.name}: {host.duplicates:,} of {host.documents:,}" for host in report.hosts]

    lines.append(f"{format_seconds(report.seconds)} on {report.engine}:")
    width = max((len(phase.name) for phase in report.phases), default=0)
    lines += [
        f"  {phase.name:<{width}}  {format_seconds(phase.seconds):>9}  {format_bytes(phase.bytes):>9}"
        + ("  (done before)" if phase.repeated else "")
        for phase in report.phases
    ]
    lines += [f"warning: {warning}" for warning in report.warnings]
    return lines


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{count:,} by {name}" for name, count in counts.items()) or "none"
