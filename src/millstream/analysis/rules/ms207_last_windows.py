"""A query in append mode has a trigger that ends the run before the last windows are written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.query import event_time
from millstream.analysis.query.plan_model import Aggregate, Growth, Join
from millstream.analysis.rule_context import Code
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.query.plan_model import PlannedQuery, StatefulOperator
    from millstream.analysis.rule_context import Facts
    from millstream.diagnostics.finding import Finding, Span

CODE = Code.of(__name__)


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:
    """Report windows, and outer-join rows that wait for a match, once per query."""
    if not query.trigger.has_end or query.output_mode is not OutputMode.APPEND:
        return
    operator = next(
        (
            candidate
            for candidate in (*query.of(Aggregate), *query.of(Join))
            if _waits_for_watermark(candidate)
        ),
        None,
    )
    if operator is None:
        return
    has_windows = isinstance(operator, Aggregate)
    rows = "its last windows" if has_windows else "the last rows without a match"
    yield CODE.warning(
        f"query '{query.name}' ends without writing {rows}",
        _find_trigger_span(query, facts) or event_time.find_span(query, operator),
        label="stops when everything is read",
        why="append mode writes a window when the watermark has passed its end, and at the end of the run no "
        "newer row advances the watermark"
        if has_windows
        else "an outer join writes such a row when the watermark has passed its time, and at the end of "
        "the run no newer row advances the watermark",
        fix="use 'output_mode: update' with a sink that has 'merge_on'"
        if has_windows
        else "use a trigger that keeps the query running",
        query=query.name,
    )


def _waits_for_watermark(operator: StatefulOperator) -> bool:
    if isinstance(operator, Aggregate):
        return operator.event_time_key is not None
    return (
        isinstance(operator, Join)
        and operator.is_stream_stream
        and operator.how.endswith("outer")
        and operator.growth is Growth.WATERMARK
    )


def _find_trigger_span(query: PlannedQuery, facts: Facts | None) -> Span | None:
    if facts is None or query.name not in facts.pipeline.queries:
        return query.span
    has_trigger = facts.pipeline.queries[query.name].trigger
    return facts.places.value(
        *(("queries", query.name, "trigger") if has_trigger else ("defaults", "trigger"))
    )
