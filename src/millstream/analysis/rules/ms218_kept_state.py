"""State is never removed. This may be intended, as for a total per key or in complete mode."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.query import event_time
from millstream.analysis.query.plan_model import Aggregate
from millstream.analysis.rule_context import Code
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.query.plan_model import Deduplicate, PlannedQuery
    from millstream.analysis.rule_context import Facts
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:  # noqa: ARG001 - plans alone
    """Check the state that MS201, MS202, MS203, MS211 and MS601, the rules for unintended growth, do not report.

    MS209 reports stream-stream joins in every mode. Keys with few possible values bound the state.
    """
    for operator in event_time.list_keyed_operators(query):
        unbounded_keys = [key for key in operator.keys if not event_time.is_bounded(operator, key)]
        reason = _find_reason(query, operator) if unbounded_keys else ""
        if not reason:
            continue
        entry = "a group" if isinstance(operator, Aggregate) else "a key"
        yield CODE.note(
            f"{event_time.owner_label(query, operator)} keeps {entry} for each "
            f"'{unbounded_keys[0].name}' for as long as the query runs",
            event_time.find_span(query, operator),
            label="groups here" if isinstance(operator, Aggregate) else "deduplicates here",
            why=reason,
            fix="estimate how many keys there will be in a year; if new keys keep occurring, "
            f"{_suggest_fix(operator)}",
            query=query.name,
        )


def _suggest_fix(operator: Aggregate | Deduplicate) -> str:
    if isinstance(operator, Aggregate):
        return "also group by a window over event time, in output mode append or update"
    return "use dropDuplicatesWithinWatermark in the view, or set 'drop_duplicates_within_watermark' on the source"


def _find_reason(query: PlannedQuery, operator: Aggregate | Deduplicate) -> str:
    """Return why nothing leaves the state; empty if entries are removed or another rule reports it."""
    if isinstance(operator, Aggregate):
        return _find_reason_of_groups(query, operator)
    is_refused = operator.node == "Distinct" and query.output_mode is OutputMode.APPEND
    if (
        is_refused
        or operator.is_within_watermark
        or any(key.delay is not None for key in operator.keys)
        or event_time.find_lost_watermark(operator)
    ):
        return ""
    if event_time.is_keyed_by_sinks(query, operator):
        return _AS_TABLE
    if query.output_mode is OutputMode.COMPLETE and not event_time.list_watermarks(operator):
        return "without a watermark Spark keeps every key"
    return ""


def _find_reason_of_groups(query: PlannedQuery, aggregate: Aggregate) -> str:
    if query.output_mode is OutputMode.COMPLETE:
        outputs_windows = event_time.outputs_every_window(aggregate)
        return (
            ""
            if outputs_windows
            else "complete mode outputs the whole result with each batch, so it keeps all of it"
        )
    if query.output_mode is not OutputMode.UPDATE or aggregate.event_time_key is not None:
        return ""
    if not event_time.has_time_key(aggregate):
        return _AS_TABLE if event_time.is_total_of_sinks(query, aggregate) else ""
    if event_time.list_watermarks(aggregate) and not event_time.find_lost_watermark(aggregate):
        return "the time that it groups by is not the one with the watermark, so no group is ever complete"
    return ""


_AS_TABLE = (
    "the state stores one entry per key, as each sink does: in memory or on disk, and in the checkpoint"
)
