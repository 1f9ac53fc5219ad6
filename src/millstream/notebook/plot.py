"""Plot the rows of a notebook display as SVG: lines over time, or bars by name."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from pandas.api import types

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

WIDTH, HEIGHT = 720, 240
LEFT, RIGHT, TOP, BOTTOM = 64, 8, 26, 22
# Maximum number of lines that are distinguishable; the legend says how many are omitted.
MOST = 8
# Distinguishable for most people with colour blindness, on white and on black.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6bb1", "#999999")


@dataclass(frozen=True)
class Axes:
    """The plotted columns: `x` is a time or a number, `y` a number, `by` the name of each line."""

    y: str
    x: str | None = None
    by: str | None = None

    @classmethod
    def of(
        cls, rows: pd.DataFrame, x: str | None = None, y: str | None = None, by: str | None = None
    ) -> Axes | None:
        """Choose the first column of a fitting type for each axis that is not given; None without a number."""
        times = [str(name) for name in rows.columns if types.is_datetime64_any_dtype(rows[name])]
        numbers = [str(name) for name in rows.columns if _is_number(rows[name])]
        texts = [str(name) for name in rows.columns if name not in times and name not in numbers]
        x = x or next(iter(times), None)
        y = y or next((name for name in numbers if name not in (x, by)), None)
        if y is None or not _is_number(rows[y]):
            return None
        by = by or next((name for name in texts if name != x), None)
        return cls(y, x, by) if x or by else None


def draw_svg(rows: pd.DataFrame, axes: Axes | None) -> str:
    """Return the plot, or an empty text if there is nothing to plot. Text of the rows is escaped."""
    if axes is None or rows.empty:
        return ""
    body = _bars(rows, axes) if axes.x is None else _lines(rows, axes, axes.x)
    if not body:
        return ""
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="100%" style="max-width:{WIDTH}px" role="img" '
        f'aria-label="{escape(axes.y)}" font-family="sans-serif" font-size="11" fill="currentColor">'
        f"{''.join(body)}</svg>"
    )


def _lines(rows: pd.DataFrame, axes: Axes, x: str) -> list[str]:
    """Draw a line for each value of `by` over `x`."""
    drawn = rows.dropna(subset=[x, axes.y])
    if drawn.empty:
        return []
    positions = (
        drawn[x].astype("int64" if types.is_datetime64_any_dtype(drawn[x]) else "float64").astype("float64")
    )
    drawn = drawn.assign(_at=positions, _of=drawn[axes.by].astype(str) if axes.by else axes.y).sort_values(
        "_at"
    )
    names = sorted(drawn["_of"].unique())
    across, up = AxisScale.of(drawn["_at"]), AxisScale.of(drawn[axes.y].astype("float64"), zero=True)
    elements = [*_grid(up), *_ends(drawn[x].iloc[0], drawn[x].iloc[-1])]
    for name, colour in zip(names[:MOST], COLOURS, strict=False):
        line_rows = drawn[drawn["_of"] == name]
        points = [
            f"{LEFT + (WIDTH - LEFT - RIGHT) * across.share(position):.1f},{_height(up.share(float(value))):.1f}"
            for position, value in zip(line_rows["_at"], line_rows[axes.y], strict=True)
        ]
        if len(points) == 1:
            coordinates = points[0].split(",")
            elements.append(f'<circle cx="{coordinates[0]}" cy="{coordinates[1]}" r="3" fill="{colour}"/>')
        elements.append(
            f'<polyline points="{" ".join(points)}" fill="none" stroke="{colour}" stroke-width="1.5"/>'
        )
    return [*elements, *_legend(names)]


def _bars(rows: pd.DataFrame, axes: Axes) -> list[str]:
    """Draw bars of the largest values by name, from the last row of each name."""
    numbers = rows.dropna(subset=[axes.y])
    # A name can be an array, and pandas takes two equal ones for different.
    last = numbers[~numbers[axes.by].astype(str).duplicated(keep="last")]
    largest = last.assign(_size=last[axes.y].astype("float64")).nlargest(MOST, "_size")
    top = max(float(largest["_size"].max()), 0.0) if len(largest) else 0.0
    if not top:
        return []
    step = (HEIGHT - 2) / MOST
    elements = []
    for number, (name, size) in enumerate(zip(largest[axes.by], largest["_size"], strict=True)):
        y, width = number * step + 2, max(float(size), 0.0) / top * (WIDTH - 240)
        text = f'y="{y + step / 2 + 2:.1f}"'
        elements += [
            f'<text x="140" {text} text-anchor="end">{escape(_short(str(name)))}</text>',
            f'<rect x="146" y="{y:.1f}" width="{width:.1f}" height="{step - 6:.1f}" fill="{COLOURS[0]}"/>',
            f'<text x="{152 + width:.1f}" {text}>{size:,.6g}</text>',
        ]
    return elements


@dataclass(frozen=True)
class AxisScale:
    """The smallest and the largest value of an axis."""

    least: float
    most: float

    @classmethod
    def of(cls, values: pd.Series, *, zero: bool = False) -> AxisScale:
        """Return the range of the values, including 0 if `zero`."""
        ends = [float(values.min()), float(values.max()), *((0.0,) if zero else ())]
        return cls(min(ends), max(ends))

    def share(self, value: float) -> float:
        """Return the position of a value from 0 to 1; 0.5 if all values are equal."""
        return (value - self.least) / (self.most - self.least) if self.most > self.least else 0.5


def _height(share: float) -> float:
    return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)


def _grid(up: AxisScale) -> list[str]:
    elements = []
    for part in (0.0, 0.5, 1.0):
        y, value = _height(part), up.least + part * (up.most - up.least)
        elements += [
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="currentColor" opacity=".2"/>',
            f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:,.6g}</text>',
        ]
    return elements


def _ends(first: object, last: object) -> list[str]:
    y = HEIGHT - 6
    return [
        f'<text x="{LEFT}" y="{y}">{escape(str(first))}</text>',
        f'<text x="{WIDTH - RIGHT}" y="{y}" text-anchor="end">{escape(str(last))}</text>',
    ]


def _legend(names: Sequence[str]) -> list[str]:
    width = (WIDTH - LEFT) // (MOST + 1)
    labels = [
        f'<text x="{LEFT + number * width}" y="14" fill="{colour}">{escape(_short(name, 11))}</text>'
        for number, (name, colour) in enumerate(zip(names[:MOST], COLOURS, strict=False))
    ]
    more = len(names) - MOST
    return [*labels, f'<text x="{LEFT + MOST * width}" y="14">+{more} more</text>'] if more > 0 else labels


def _short(text: str, most: int = 20) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _is_number(column: pd.Series) -> bool:
    return types.is_numeric_dtype(column) and not types.is_bool_dtype(column)
