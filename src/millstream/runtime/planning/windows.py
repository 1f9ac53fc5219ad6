"""Windows over event time, told from what Spark's analyser has made of `window()` and `session_window()`."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from millstream.analysis.dataflow import TimeWindow, WindowKind
from millstream.runtime.planning.intervals import length

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.runtime.planning.expressions import Parsed


def window(struct: Parsed) -> TimeWindow | None:
    """The window that a struct of `start` and `end` is, if it is one."""
    parts = struct.bare.inputs
    if struct.bare.kind != "CreateNamedStruct" or len(parts) != 4:
        return None
    if [part.entry.get("value") for part in parts[::2]] != ["start", "end"]:
        return None
    start, end = _inner(parts[1]), _inner(parts[3])
    if parts[1] is start:
        # No conversion around it: a struct that the user made.
        return None
    column = next((one.name for one in start.walk() if one.kind == "AttributeReference"), "")
    if slide := next((one for one in start.walk() if one.kind == "Remainder"), None):
        by, long = _micros(slide.inputs[1]), _micros(end.inputs[1]) if end.kind == "Add" else None
        if by is None or long is None:
            return None
        kind = WindowKind.TUMBLING if by == long else WindowKind.SLIDING
        return TimeWindow(kind, column, long, by)
    gap = next((one for one in end.walk() if one.kind == "TimestampAddInterval"), None)
    return TimeWindow(WindowKind.SESSION, column, length(gap.inputs[1])) if gap else None


def expanded(projections: Sequence[Sequence[Parsed]], place: int) -> TimeWindow | None:
    """The sliding window whose copies of each row are told apart by one column of an Expand."""
    return window(projections[0][place]) if projections and place < len(projections[0]) else None


def _inner(part: Parsed) -> Parsed:
    while part.kind in ("KnownNullable", "PreciseTimestampConversion") and part.inputs:
        part = part.inputs[0]
    return part


def _micros(part: Parsed) -> timedelta | None:
    value = part.entry.get("value") if part.kind == "Literal" else None
    return timedelta(microseconds=int(value)) if value is not None else None
