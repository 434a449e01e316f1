"""Tests of charts in SVG."""

from xml.etree import ElementTree

import pytest

from neardup.evaluation.svg_chart import Series, round_steps, svg_of


@pytest.mark.parametrize("drawn", ["line", "dots", "bars"])
def test_a_chart_is_well_formed(drawn: str) -> None:
    points = [(float(x), float(x * x)) for x in range(20)]
    svg = svg_of(
        [Series("<one> & two", points, drawn), Series("two", points[:1])],  # type: ignore[arg-type]
        title="a < b",
        across="x",
        up="y",
        values=True,
    )
    root = ElementTree.fromstring(svg)
    texts = [each.text for each in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"a < b", "x", "y", "<one> & two", "361.00"} <= set(texts)


def test_one_point_is_enough() -> None:
    ElementTree.fromstring(svg_of([Series("", [(1.0, 0.0)])], title="", across="", up=""))


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.0, 1.0, [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        (0.0, 32.0, [0.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0]),
        (-4.0, 4.0, [-4.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 4.0]),
        (3.0, 3.0, [3.0]),
        (0.0, 0.077, [0.0, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07]),
    ],
)
def test_axes_are_labelled_with_round_numbers(low: float, high: float, expected: list[float]) -> None:
    assert round_steps(low, high) == pytest.approx(expected)
