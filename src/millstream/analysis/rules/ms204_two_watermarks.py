"""A stream that is given a watermark a second time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis import eventtime
from millstream.analysis.dataflow import Aggregate, Deduplicate, Join, Watermark
from millstream.analysis.facts import Code
from millstream.spec.mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.dataflow import Operator, PlannedQuery
    from millstream.analysis.facts import Facts
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:  # noqa: ARG001
    """Each watermark that stands above another; those of two branches that meet later do not.

    Above an aggregation in append mode it does not fail: the query waits for ever.
    """
    for upper in query.of(Watermark):
        lower, through = _below(upper, aggregated=False)
        if lower is None:
            continue
        stuck = through and query.output_mode is OutputMode.APPEND
        yield CODE.error(
            f"{eventtime.who(query, upper)} has a second watermark, on '{upper.event_time}', "
            f"above the one on '{lower.event_time}'",
            eventtime.place(query, upper),
            label="declared again here",
            why=(
                "the query follows the slower of the two, and the upper one sees no row before the lower has moved: "
                "none ever comes out"
                if stuck
                else "Spark fails at the first batch: a watermark may not be defined anew"
            ),
            fix=f"keep the one on '{lower.event_time}'"
            + (", whose windows carry it on" if stuck else " or this one"),
            query=query.name,
        )


def _below(operator: Operator, *, aggregated: bool) -> tuple[Watermark | None, bool]:
    """The next watermark below, and whether an aggregation lies between.

    Rows that come out of a join of streams, or of a deduplication that has no watermark of its own, may be given one.
    """
    for one in operator.inputs:
        if isinstance(one, Watermark) and one.streaming:
            return one, aggregated
        if (isinstance(one, Join) and one.of_streams) or (
            isinstance(one, Deduplicate) and not one.within_watermark
        ):
            continue
        found = _below(one, aggregated=aggregated or isinstance(one, Aggregate))
        if found[0]:
            return found
    return None, False
