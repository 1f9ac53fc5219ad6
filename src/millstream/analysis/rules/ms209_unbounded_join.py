"""A stream-stream join keeps the rows of a side forever."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.query import event_time
from millstream.analysis.query.plan_model import Growth, Join
from millstream.analysis.rule_context import Code

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.query.plan_model import Operator, PlannedQuery, WatermarkOperator
    from millstream.analysis.rule_context import Facts
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:  # noqa: ARG001
    """Check every stream-stream join, in every output mode.

    Spark clears both sides if event time is among the keys, or if both sides have a watermark and the condition
    bounds the difference of their times from above and from below.
    """
    for operator in query.of(Join):
        if operator.is_stream_stream and (reason := _find_reason(operator)):
            yield CODE.error(
                f"{event_time.owner_label(query, operator)} joins two streams and keeps every row of "
                f"{_name_growing_sides(operator)} forever",
                event_time.find_span(query, operator),
                label="joins here",
                why=reason,
                fix=_suggest_fix(operator),
                query=query.name,
            )


def _find_reason(join: Join) -> str:
    """Return what is missing; empty if the state is bounded."""
    if _has_event_time_key(join):
        return ""
    if unmarked := [side for side in join.inputs if not _has_watermark(side)]:
        watermarks = event_time.list_watermarks(unmarked[0])
        problem = (
            _name_lost_watermark(unmarked[0], watermarks[0])
            if watermarks
            else _name_missing_watermark(unmarked)
        )
        return f"{problem}, so Spark cannot tell when a match can no longer arrive"
    bound = join.bound
    if bound is None:
        return (
            "the condition does not limit how far apart in time two matching rows may be, so a match "
            "may arrive at any time"
        )
    if bound.earliest is None or bound.latest is None:
        return f"'{bound.text}' limits the difference of the two event times in one direction only"
    return (
        ""
        if join.growth is Growth.WATERMARK
        else "Spark cannot derive from the condition how far apart in time two matching rows may be"
    )


def _name_growing_sides(join: Join) -> str:
    bound = join.bound
    if (
        bound is None
        or any(not _has_watermark(side) for side in join.inputs)
        or bound.earliest == bound.latest
    ):
        return "both"
    # A row of one side can be removed once no matching row of the other side can arrive any more.
    return "the left" if bound.latest is None else "the right" if bound.earliest is None else "both"


def _has_event_time_key(join: Join) -> bool:
    """Return whether event time is among the keys."""
    return any(left.delay is not None or right.delay is not None for left, right in join.keys)


def _has_watermark(side: Operator) -> bool:
    return any(column.delay is not None for column in side.columns)


def _name_lost_watermark(side: Operator, watermark: WatermarkOperator) -> str:
    """Say what became of the event time below a side: it was left out, or computed anew."""
    name, time = watermark.event_time, watermark.column(watermark.event_time)
    # All columns of a JSON message have one origin.
    if time is None or any(
        column.origins & time.origins
        for column in side.columns
        if event_time.is_time(column) or column.name.lower() == name.lower()
    ):
        return f"'{name}' was recomputed and has lost its watermark"
    return f"one side has no column of the event time '{name}' any more"


def _name_missing_watermark(sides: list[Operator]) -> str:
    """Name the first source without a watermark, for a message."""
    names = [read.source for side in sides for read in event_time.list_streams(side) if read.source]
    return f"source '{names[0]}' has no watermark" if names else "one side has no watermark"


def _suggest_fix(join: Join) -> str:
    if any(not _has_watermark(side) for side in join.inputs):
        return (
            "declare a watermark on both sides, and limit the difference of their event times in the "
            "join condition"
        )
    left, right = (
        next(column.name for column in side.columns if column.delay is not None) for side in join.inputs
    )
    return f"add a condition such as 'r.{right} BETWEEN l.{left} AND l.{left} + INTERVAL 1 HOUR'"
