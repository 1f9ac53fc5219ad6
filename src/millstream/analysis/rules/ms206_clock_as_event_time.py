"""A watermark or window uses the time at which a row is processed, not the time at which it happened."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.query import event_time
from millstream.analysis.query.plan_model import Aggregate, Stability, WatermarkOperator
from millstream.analysis.rule_context import Code

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.query.plan_model import Column, PlannedQuery
    from millstream.analysis.rule_context import Facts
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:  # noqa: ARG001
    """Check columns that contain only the clock. The clock as a bound or default for a time of the row is correct."""
    for operator in query.walk():
        column = None
        if isinstance(operator, WatermarkOperator) and operator.is_streaming:
            column = operator.column(operator.event_time)
            problem = f"uses the clock as event time: '{operator.event_time}'"
        elif (
            isinstance(operator, Aggregate)
            and operator.is_streaming
            and not event_time.list_watermarks(operator)
        ):
            column = next(
                (key for key in operator.keys if event_time.is_time(key) and _is_only_clock(key)), None
            )
            problem = "groups rows by the time at which they are processed"
        if column and _is_only_clock(column):
            spans = [volatile.span for volatile in column.volatile if volatile.span]
            yield CODE.warning(
                f"{event_time.owner_label(query, operator)} {problem}",
                spans[0] if spans else event_time.find_span(query, operator),
                label="the clock",
                why="no row is ever late, and rows delayed by an outage are counted in the window in which they "
                "are processed: another run over the same rows gives another result",
                fix="use a time that is stored in the rows: when the event happened, or when the broker received "
                "the message",
                query=query.name,
            )


def _is_only_clock(column: Column) -> bool:
    clocks = (Stability.BATCH, Stability.UNSTABLE)
    return not column.origins and any(volatile.stability in clocks for volatile in column.volatile)
