"""Charts as SVG."""

from xml.etree import ElementTree

import pytest

from neardup.chart import Series, svg_of


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
