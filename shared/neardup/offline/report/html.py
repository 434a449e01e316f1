"""The report of an offline pass as a self-contained HTML page without scripts, fonts or links.

Names of hosts and warnings contain text from the web. All text is therefore escaped, and the content security policy of
the page forbids loading or running anything.
"""

import math
from collections import Counter
from collections.abc import Sequence
from html import escape
from typing import Final, NamedTuple

from neardup.offline.report.report import Report
from neardup.util.formatting import format_bytes, format_seconds, printable, shortened

_STYLE: Final = """
:root { color-scheme: light dark; --bar: #4477aa; --part: #cc6677; --quiet: #777 }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
h1, h2 { font-weight: 600; line-height: 1.2 } h2 { margin-top: 2rem; font-size: 1.1rem }
table { border-collapse: collapse } td, th { padding: .15rem 1rem .15rem 0; text-align: left; font-weight: normal }
td { font-variant-numeric: tabular-nums; text-align: right }
svg { width: 100%; height: auto; font: 12px system-ui, sans-serif }
text { fill: currentColor } .all { fill: var(--bar) } .part { fill: var(--part) }
.warning { border-left: 4px solid var(--part); padding-left: .8rem } small { color: var(--quiet) }
"""
_WIDTH: Final = 900
_LABEL: Final = 260
_BAR: Final = 440
_ROW: Final = 22
_LONGEST_LABEL: Final = 40


class Bar(NamedTuple):
    """A bar of a chart. The share `part` of `value` is drawn in another colour, in the same unit."""

    label: str
    value: float
    shown: str
    part: float = 0


def html(report: Report) -> str:
    """Return the page."""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width">
<title>neardup: {report.clusters:,} clusters of {report.documents:,} documents</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>{report.clusters:,} clusters of {report.documents:,} documents</h1>
{"".join(f'<p class="warning">{_text(warning)}</p>' for warning in report.warnings)}
{_facts(report)}
<h2>Clusters by size <small>(logarithmic)</small></h2>
{_chart(_sizes(report.sizes), logarithmic=True)}
<h2>Hosts with most duplicates <small>(duplicates of documents)</small></h2>
{_chart([Bar(h.name, h.documents, f"{h.duplicates:,} of {h.documents:,}", h.duplicates) for h in report.hosts])}
<h2>Time by phase</h2>
{_chart([Bar(_phase(p.name, p.repeated), p.seconds, format_seconds(p.seconds)) for p in report.phases])}
<h2>Bytes written by phase</h2>
{_chart([Bar(_phase(p.name, p.repeated), p.bytes, format_bytes(p.bytes)) for p in report.phases])}
<p><small>Signatures: {_text(report.signature_version)}</small></p>
</body>
</html>
"""


def _facts(report: Report) -> str:
    facts: list[tuple[str, str]] = [
        ("new documents", f"{report.new_documents:,}"),
        ("identical to the first document of their cluster", f"{report.identical:,}"),
        ("with the same text", f"{report.same_text:,}"),
        ("with the same shingles", f"{report.same_shingles:,}"),
        ("near-duplicates of it", f"{report.near:,}"),
        ("contained in another document", f"{report.contained:,}"),
        ("verdicts overturned", f"{report.overturned:,}"),
        ("largest cluster", f"{report.largest:,}"),
        *((f"pairs by {name}", f"{count:,}") for name, count in report.pairs.items()),
        *((f"keys too common, of {name}", f"{count:,}") for name, count in report.common_keys.items()),
        ("pairs that resemble each other", f"{report.edges:,}"),
        ("clusters by the transitive rule", f"{report.transitive_clusters:,}"),
        ("largest of these clusters", f"{report.transitive_largest:,}"),
        ("time", format_seconds(report.seconds)),
        ("engine", report.engine),
    ]
    rows = "\n".join(f"<tr><th>{_text(name)}</th><td>{_text(value)}</td></tr>" for name, value in facts)
    return f"<table>\n{rows}\n</table>"


def _sizes(sizes: dict[int, int]) -> list[Bar]:
    """Count clusters in classes of sizes 1, 2, 3 to 4, 5 to 8 and so on, each twice as wide as the one before."""
    classes: Counter[int] = Counter()
    for size, count in sizes.items():
        classes[(size - 1).bit_length()] += count
    bars = []
    for number in range(max(classes, default=-1) + 1):
        first, last = (1 << number >> 1) + 1, 1 << number
        label = f"{last:,}" if number < 2 else f"{first:,} to {last:,}"
        bars.append(Bar(label, classes[number], f"{classes[number]:,}"))
    return bars


def _chart(bars: Sequence[Bar], *, logarithmic: bool = False) -> str:
    if not bars:
        return "<p>none</p>"

    def width(value: float) -> float:
        return _BAR * _height(value, logarithmic) / max(_height(most, logarithmic), 1e-9)

    most = max(bar.value for bar in bars)
    lines = []
    for number, bar in enumerate(bars):
        top, baseline = number * _ROW, number * _ROW + 15
        label = _text(shortened(printable(bar.label), _LONGEST_LABEL))
        end = _LABEL + width(bar.value)
        lines.append(
            f'<text x="{_LABEL - 8}" y="{baseline}" text-anchor="end">{label}</text>'
            f'<rect class="all" x="{_LABEL}" y="{top + 3}" width="{width(bar.value):.1f}" height="{_ROW - 6}"/>'
            + (
                f'<rect class="part" x="{_LABEL}" y="{top + 3}" width="{width(bar.part):.1f}" height="{_ROW - 6}"/>'
                if bar.part
                else ""
            )
            + f'<text x="{end + 8:.1f}" y="{baseline}">{_text(bar.shown)}</text>'
        )
    return f'<svg viewBox="0 0 {_WIDTH} {len(bars) * _ROW}" role="img">\n' + "\n".join(lines) + "\n</svg>"


def _height(value: float, logarithmic: bool) -> float:
    # Add one, so that a value of 1 has a visible bar.
    return math.log10(1 + value) if logarithmic else value


def _phase(name: str, repeated: bool) -> str:
    return f"{name} (done before)" if repeated else name


def _text(text: str) -> str:
    return escape(printable(text))
