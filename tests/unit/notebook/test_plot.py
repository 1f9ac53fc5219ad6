"""What of the rows is drawn, and how."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import numpy as np
import pandas as pd
import pytest

from millstream.notebook.plot import MOST, Axes, draw_svg

TIMES = pd.to_datetime(["2026-01-01 12:02", "2026-01-01 12:01", "2026-01-01 12:00"])
READINGS = pd.DataFrame({"since": TIMES, "sensor": ["a", "b", "a"], "celsius": [20.0, 21.0, 22.0]})
WORDS = pd.DataFrame({"word": ["to", "be"], "count": [3, 2]})


def shapes(rows: pd.DataFrame, axes: Axes | None, tag: str) -> list[ET.Element]:
    """The shapes of one kind in the plot, which must be well-formed."""
    return list(ET.fromstring(draw_svg(rows, axes)).iter(tag))


@pytest.mark.parametrize(
    ("rows", "axes"),
    [
        (READINGS, Axes("celsius", "since", "sensor")),
        (WORDS, Axes("count", None, "word")),
        (READINGS[["sensor"]], None),
        (READINGS[["celsius"]], None),
        (READINGS.assign(sensor=[True, False, True])[["since", "sensor"]], None),
    ],
)
def test_axes_are_found_by_their_types(rows: pd.DataFrame, axes: Axes | None) -> None:
    assert Axes.of(rows) == axes


def test_axes_that_are_named_are_taken() -> None:
    rows = READINGS.assign(other=[1, 2, 3], number=[4, 5, 6])

    assert Axes.of(rows, x="number", y="other", by="since") == Axes("other", "number", "since")


def test_each_name_has_a_line_in_the_order_of_time() -> None:
    lines = shapes(READINGS, Axes.of(READINGS), "polyline")

    points = [
        [tuple(map(float, part.split(","))) for part in line.attrib["points"].split()] for line in lines
    ]
    # a: 22 at the left end, then 20 at the right one, which lies lower: SVG counts from the top.
    assert len(points) == 2
    (first, last) = points[0]
    assert first[0] < last[0]
    assert first[1] < last[1]


def test_a_bar_is_as_long_as_its_number() -> None:
    widths = [float(bar.attrib["width"]) for bar in shapes(WORDS, Axes.of(WORDS), "rect")]

    assert widths[0] / widths[1] == pytest.approx(1.5)


@pytest.mark.parametrize(
    "names",
    [
        [["a", "b"], ["a"], ["a"]],
        [{"a": 1}, {"a": 2}, {"a": 2}],
        [np.array([1]), np.array([1, 2]), np.array([1, 2])],
    ],
)
def test_an_array_or_a_struct_is_the_name_of_a_bar(names: list[object]) -> None:
    rows = pd.DataFrame({"tags": names, "n": [1, 2, 3]})

    assert len(shapes(rows, Axes.of(rows), "rect")) == 2


def test_more_lines_than_can_be_told_apart_are_left_out_and_counted() -> None:
    many = pd.DataFrame({"at": [TIMES[0]] * 12, "of": [f"n{n:02}" for n in range(12)], "n": range(12)})
    drawn = draw_svg(many, Axes.of(many))

    assert len(re.findall("<polyline", drawn)) == MOST
    assert f"+{12 - MOST} more" in drawn


def test_rows_cannot_put_anything_into_the_page() -> None:
    evil = "<script>alert(1)</script>"
    lines = READINGS.assign(sensor=evil).rename(columns={"celsius": evil})
    bars = WORDS.assign(word=["</text><script>", "b"])

    for rows in (lines, bars):
        drawn = draw_svg(rows, Axes.of(rows))
        assert "<script" not in drawn
        assert ET.fromstring(drawn) is not None


@pytest.mark.parametrize(
    "rows", [READINGS[:0], READINGS.assign(celsius=float("nan")), WORDS.assign(count=0), READINGS[:1]]
)
def test_few_or_no_values_are_no_error(rows: pd.DataFrame) -> None:
    drawn = draw_svg(rows, Axes.of(rows))

    assert not drawn or ET.fromstring(drawn) is not None
