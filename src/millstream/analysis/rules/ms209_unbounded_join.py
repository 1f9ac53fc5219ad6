"""A join of two streams that keeps rows of a side for ever."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis import eventtime
from millstream.analysis.dataflow import Growth, Join
from millstream.analysis.facts import Code

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.dataflow import Operator, PlannedQuery
    from millstream.analysis.facts import Facts
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:  # noqa: ARG001
    """Every kind of join of two streams, in every mode.

    Spark clears both sides where event time is among the keys, or where both sides have a watermark and the
    condition bounds the distance of their times from above and from below.
    """
    above = {id(side): one for one in query.walk() for side in one.inputs}
    for one in query.of(Join):
        if _filtered(one, above.get(id(one))):
            continue
        if one.of_streams and (why := _why(one)):
            yield CODE.error(
                f"{eventtime.who(query, one)} joins two streams and keeps every row of {_sides(one)} for ever",
                eventtime.place(query, one),
                label="joins here",
                why=why,
                fix=_cure(one),
                query=query.name,
            )


def _why(one: Join) -> str:
    """What is missing; nothing where the state is bounded."""
    if _timed(one):
        return ""
    if bare := [side for side in one.inputs if not _marked(side)]:
        lost = eventtime.watermarks(bare[0])
        said = (
            f"'{lost[0].event_time}' was computed anew and has lost its watermark" if lost else _names(bare)
        )
        return f"{said}, so Spark cannot tell that a partner comes too late"
    bound = one.bound
    if bound is None:
        return "no condition says how far apart in time two rows may be, so a partner may come at any time"
    if bound.earliest is None or bound.latest is None:
        return f"'{bound.text}' bounds the distance of the two times on one side only"
    return "" if one.growth is Growth.WATERMARK else "Spark cannot derive a bound in time from the condition"


def _filtered(one: Join, above: Operator | None) -> bool:
    """Does a WHERE right above compare the times of both sides? Spark makes it part of an inner join's condition."""
    if above is None or above.node != "Filter" or one.how not in ("inner", "cross"):
        return False
    times = {
        leaf.column for top in above.expressions for leaf in top.walk() if leaf.column and leaf.column.delay
    }
    return all(any(time in side.columns for time in times) for side in one.inputs)


def _sides(one: Join) -> str:
    bound = one.bound
    if bound is None or any(not _marked(side) for side in one.inputs) or bound.earliest == bound.latest:
        return "both"
    # A row of the right can be forgotten once no row of the left that is late enough can come, and so mirrored.
    return "the left" if bound.latest is None else "the right" if bound.earliest is None else "both"


def _timed(one: Join) -> bool:
    """Is event time among the keys?"""
    return any(left.delay is not None or right.delay is not None for left, right in one.keys)


def _marked(side: Operator) -> bool:
    return any(column.delay is not None for column in side.columns)


def _names(sides: list[Operator]) -> str:
    """The streams of the sides that have no watermark, for a sentence."""
    names = [read.source for side in sides for read in eventtime.streams(side) if read.source]
    return f"source '{names[0]}' has no watermark" if names else "one side has no watermark"


def _cure(one: Join) -> str:
    if any(not _marked(side) for side in one.inputs):
        return "declare a watermark on both sides, and bound the distance of their times in the condition"
    left, right = (
        next(column.name for column in side.columns if column.delay is not None) for side in one.inputs
    )
    return f"add such as 'r.{right} BETWEEN l.{left} AND l.{left} + INTERVAL 1 HOUR' to the condition"
