"""Charts as SVG without a plotting library: lines, points and bars over two axes."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10
from typing import Final, Literal

WIDTH: Final = 640
HEIGHT: Final = 400
MARGIN: Final = 60
_COLOURS: Final = ("steelblue", "firebrick", "seagreen", "darkorange")
_TICKS: Final = 8
_LEGEND: Final = 46
_LETTER: Final = 7
"""Approximate width of a letter."""


@dataclass(frozen=True, slots=True)
class Series:
    """Named points, drawn as a line, as dots or as bars."""

    name: str
    points: Sequence[tuple[float, float]]
    drawn: Literal["line", "dots", "bars"] = "line"


def svg_of(
    series: Sequence[Series], *, title: str, across: str, up: str, top: float | None = None, values: bool = False
) -> str:
    """Return a chart of at least one point. `across` and `up` name the axes.

    The vertical axis spans 0 to `top`, by default a little above the maximum. With `values`, every point is labelled
    with its height.
    """
    xs = [x for each in series for x, _ in each.points]
    left, right = min(xs), max(xs)
    across_span = right - left or 1.0
    highest = top or 1.1 * max((y for each in series for _, y in each.points), default=0.0) or 1.0
    base, end = HEIGHT - MARGIN, WIDTH - MARGIN

    def place(x: float, y: float) -> tuple[float, float]:
        return MARGIN + (x - left) / across_span * (end - MARGIN), base - y / highest * (base - MARGIN)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif">',
        "<style>text { font-size: 12px }</style>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{WIDTH / 2}" y="24" text-anchor="middle">{escape(title)}</text>',
        f'<path d="M{MARGIN},{MARGIN} V{base} H{end}" fill="none" stroke="black"/>',
        f'<text x="{WIDTH / 2}" y="{HEIGHT - 14}" text-anchor="middle">{escape(across)}</text>',
        f'<text x="16" y="{HEIGHT / 2}" text-anchor="middle" transform="rotate(-90 16 {HEIGHT / 2})">'
        f"{escape(up)}</text>",
    ]
    for x in sorted(set(xs)) if len(set(xs)) <= _TICKS else round_steps(left, right):
        at = place(x, 0)[0]
        parts.append(f'<path d="M{at:.1f},{base} v5" stroke="black"/>')
        parts.append(f'<text x="{at:.1f}" y="{base + 18}" text-anchor="middle">{x:.3g}</text>')
    for y in round_steps(0.0, highest):
        at = place(left, y)[1]
        parts.append(f'<path d="M{MARGIN},{at:.1f} H{end}" stroke="lightgrey" stroke-width="0.5"/>')
        parts.append(f'<text x="{MARGIN - 6}" y="{at + 4:.1f}" text-anchor="end">{y:.6g}</text>')
    legend_at = float(MARGIN)
    for number, each in enumerate(series):
        colour = _COLOURS[number % len(_COLOURS)]
        placed = [place(x, y) for x, y in each.points]
        parts += _drawn(each, placed, colour, base)
        if values:
            for (_, y), (at_x, at_y) in zip(each.points, placed, strict=True):
                parts.append(f'<text x="{at_x:.1f}" y="{at_y - 10:.1f}" text-anchor="middle">{y:.2f}</text>')
        if len(series) > 1:
            # Place the legend above the axes, where no point covers it.
            parts.append(f'<circle cx="{legend_at:.0f}" cy="{_LEGEND - 4}" r="4" fill="{colour}"/>')
            parts.append(f'<text x="{legend_at + 9:.0f}" y="{_LEGEND}" fill="{colour}">{escape(each.name)}</text>')
            legend_at += 30 + _LETTER * len(each.name)
    return "\n".join([*parts, "</svg>", ""])


def _drawn(each: Series, placed: list[tuple[float, float]], colour: str, base: int) -> list[str]:
    if each.drawn == "bars":
        path = " ".join(f"M{x:.1f},{base} V{y:.1f}" for x, y in placed)
        width = max(1.0, 0.8 * (WIDTH - 2 * MARGIN) / max(len(placed), 1))
        return [f'<path d="{path}" stroke="{colour}" stroke-width="{width:.1f}"/>']
    dots = [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in placed]
    if each.drawn == "dots":
        return dots
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in placed)
    return [f'<polyline points="{line}" fill="none" stroke="{colour}"/>', *dots]


def round_steps(low: float, high: float) -> list[float]:
    """Return the multiples of a round step between two numbers, few enough for the labels of an axis.

    The step is 1, 2 or 5 times a power of ten.
    """
    rough = (high - low) / _TICKS or 1.0
    power = 10.0 ** floor(log10(rough))
    step = next(power * each for each in (1, 2, 5, 10) if power * each >= rough * (1 - 1e-9))
    first = ceil(low / step - 1e-9)
    return [round(number * step, 10) for number in range(first, floor(high / step + 1e-9) + 1)]
