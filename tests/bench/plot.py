"""A curve as an SVG file, made by hand."""

from collections.abc import Sequence

WIDTH, HEIGHT, MARGIN = 640, 400, 60


def svg_of(points: Sequence[tuple[float, float]], *, title: str, across: str, up: str) -> str:
    """At least two points, rising from left to right; the vertical axis begins at 0. The labels name the axes."""
    left, right = points[0][0], points[-1][0]
    top = 1.1 * max(y for _, y in points)

    def place(x: float, y: float) -> tuple[float, float]:
        return (
            MARGIN + (x - left) / (right - left) * (WIDTH - 2 * MARGIN),
            HEIGHT - MARGIN - y / top * (HEIGHT - 2 * MARGIN),
        )

    placed = [place(x, y) for x, y in points]
    base = HEIGHT - MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif">',
        "<style>text { font-size: 12px }</style>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{WIDTH / 2}" y="24" text-anchor="middle">{title}</text>',
        f'<path d="M{MARGIN},{MARGIN} V{base} H{WIDTH - MARGIN}" fill="none" stroke="black"/>',
        f'<text x="{WIDTH / 2}" y="{HEIGHT - 14}" text-anchor="middle">{across}</text>',
        f'<text x="16" y="{HEIGHT / 2}" text-anchor="middle" transform="rotate(-90 16 {HEIGHT / 2})">{up}</text>',
        f'<polyline points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in placed)}" fill="none" stroke="steelblue"/>',
    ]
    for (x, y), (at_x, at_y) in zip(points, placed, strict=True):
        parts += [
            f'<circle cx="{at_x:.1f}" cy="{at_y:.1f}" r="4" fill="steelblue"/>',
            f'<text x="{at_x:.1f}" y="{at_y - 10:.1f}" text-anchor="middle">{y:.2f}</text>',
            f'<text x="{at_x:.1f}" y="{base + 18}" text-anchor="middle">{x:g}</text>',
        ]
    return "\n".join([*parts, "</svg>", ""])
