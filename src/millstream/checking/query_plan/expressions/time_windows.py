"""Recognise event-time windows in the expressions that Spark's analyser creates for `window` functions."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from millstream.analysis.query.plan_model import TimeWindow, WindowKind
from millstream.checking.query_plan.expressions.intervals import read_length

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.checking.query_plan.expressions.expressions import ParsedExpression


def read_window(struct: ParsedExpression) -> TimeWindow | None:
    """Return the window of a struct of `start` and `end`, or None if the struct is not a window."""
    parts = struct.bare.inputs
    if struct.bare.kind != "CreateNamedStruct" or len(parts) != 4:
        return None
    if [part.entry.get("value") for part in parts[::2]] != ["start", "end"]:
        return None
    start, end = _unwrapped(parts[1]), _unwrapped(parts[3])
    if parts[1] is start:
        # Without a conversion around its parts, the user created the struct.
        return None
    column = next((node.name for node in start.walk() if node.kind == "AttributeReference"), "")
    if slide := next((node for node in start.walk() if node.kind == "Remainder"), None):
        slide_length, window_length = (
            _duration(slide.inputs[1]),
            _duration(end.inputs[1]) if end.kind == "Add" else None,
        )
        if slide_length is None or window_length is None:
            return None
        kind = WindowKind.TUMBLING if slide_length == window_length else WindowKind.SLIDING
        return TimeWindow(kind, column, window_length, slide_length, _read_offset(slide))
    gap = next((node for node in end.walk() if node.kind == "TimestampAddInterval"), None)
    return TimeWindow(WindowKind.SESSION, column, read_length(gap.inputs[1])) if gap else None


def _read_offset(slide: ParsedExpression) -> timedelta:
    """Return the start offset, which Spark subtracts from the time before it takes the remainder."""
    dividend = slide.inputs[0]
    offset = _duration(dividend.inputs[1]) if dividend.kind == "Subtract" else None
    return offset or timedelta()


def read_sliding_window(projections: Sequence[Sequence[ParsedExpression]], place: int) -> TimeWindow | None:
    """Return the sliding window in one column of an Expand, which creates a copy of each row per window."""
    return read_window(projections[0][place]) if projections and place < len(projections[0]) else None


def _unwrapped(part: ParsedExpression) -> ParsedExpression:
    while part.kind in ("KnownNullable", "PreciseTimestampConversion") and part.inputs:
        part = part.inputs[0]
    return part


def _duration(part: ParsedExpression) -> timedelta | None:
    value = part.entry.get("value") if part.kind == "Literal" else None
    return timedelta(microseconds=int(value)) if value is not None else None
