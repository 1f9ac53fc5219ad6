"""A query groups by an event time that was cast or recomputed, and so has lost its watermark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.query import event_time
from millstream.analysis.query.plan_model import Aggregate, Deduplicate, WatermarkOperator
from millstream.analysis.rule_context import Code
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.query.plan_model import Column, PlannedQuery
    from millstream.analysis.rule_context import Facts
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)
INSTEAD_OF = ("without watermark",)
# The verb of each operator, and the name of an entry of its state.
_WORDS = {Aggregate: ("groups", "group"), Deduplicate: ("deduplicates", "key")}


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:  # noqa: ARG001
    """Check aggregations and deduplications whose key is computed from event time and carries no watermark.

    A key that is a whole day adds one entry per day: a warning, or nothing if the sinks store a row for each. Every
    other key is an error.
    """
    for operator in event_time.list_keyed_operators(query):
        if isinstance(operator, Aggregate) and query.output_mode is OutputMode.COMPLETE:
            continue
        lost_watermark = event_time.find_lost_watermark(operator)
        if lost_watermark is None:
            continue
        key, watermark = lost_watermark
        origin = event_time.find_losing_operator(operator, watermark)
        if isinstance(origin, WatermarkOperator):
            continue
        grows_slowly = (
            isinstance(operator, Aggregate) and key.type == "date" and query.output_mode is OutputMode.UPDATE
        )
        if grows_slowly and event_time.is_keyed_by_sinks(query, operator):
            continue
        report = CODE.warning if grows_slowly else CODE.error
        verb, entry = _WORDS[type(operator)]
        yield report(
            f"{event_time.owner_label(query, operator)} {verb} by '{key.name}', without the watermark of "
            f"'{watermark.event_time}'",
            origin.span or event_time.find_span(query, operator),
            label="lost here",
            why="a column keeps its watermark when it is renamed or passed to window(), but not in other "
            f"expressions, so no {entry} is ever removed from the state",
            fix=_suggest_fix(operator, key, watermark.event_time),
            query=query.name,
        )


def _suggest_fix(operator: Aggregate | Deduplicate, key: Column, event_time_name: str) -> str:
    if isinstance(operator, Deduplicate):
        return f"deduplicate by '{event_time_name}' itself, or use dropDuplicatesWithinWatermark"
    window_fix = f"group by 'window({event_time_name}, …)'"
    # Spark refuses a watermark on a date.
    if key.type != "timestamp":
        return window_fix
    return f"{window_fix}, or declare the watermark on the computed column instead of '{event_time_name}'"
