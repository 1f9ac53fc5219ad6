"""Days or hours depend on a time zone which is not set, or days do not begin at local midnight."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from millstream.analysis.query import event_time
from millstream.analysis.query.plan_model import Aggregate, Deduplicate, WindowKind
from millstream.analysis.rule_context import Code

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.query.plan_model import Expression, PlannedQuery
    from millstream.analysis.rule_context import Facts
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)
SETTING = "spark.sql.session.timeZone"

# Calendar functions that Spark evaluates in the session's time zone.
_CALENDAR = frozenset(
    {"hour", "month", "quarter", "year", "trunc", "trunc_timestamp", "trunc_date", "to_date", "date_format"}
    | {"day_of_week", "week_day", "day_of_month", "day_of_year", "week_of_year"}
)
_UTC = frozenset({"utc", "z", "gmt", "etc/utc", "etc/gmt", "+00:00", "+0", "utc+0"})


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:
    """Check the zone. A spec runs in UTC by default, a script in the time zone of its machine."""
    zone = query.spark.get(SETTING)
    if zone is not None and zone.lower() not in _UTC:
        yield from _check_windows(query, zone)
    elif zone is None and facts is None:
        yield from _check_script(query)


def _check_windows(query: PlannedQuery, zone: str) -> Iterator[Finding]:
    """Report windows of days: Spark counts them from 1970-01-01 00:00 UTC, whatever the session's zone is."""
    for aggregate in query.of(Aggregate):
        window = aggregate.window
        is_tumbling = window is not None and window.kind is WindowKind.TUMBLING and window.length is not None
        if (
            not is_tumbling
            or window is None
            or window.length is None
            or window.length % timedelta(days=1)
            or window.offset
            or _is_shifted(aggregate, window.column)
        ):
            continue
        days = window.length // timedelta(days=1)
        yield CODE.warning(
            f"{event_time.owner_label(query, aggregate)} has windows of {'a day' if days == 1 else f'{days} days'} "
            f"that begin at midnight UTC, but the time zone is {zone}",
            event_time.find_span(query, aggregate),
            label="begins at midnight UTC",
            why="window() divides time from 1970-01-01 00:00 UTC on, and ignores the time zone of the session",
            fix=f"shift '{window.column}' by from_utc_timestamp(…, '{zone}') and declare the watermark on the "
            "result only, or set the time zone to UTC",
            query=query.name,
        )


def _is_shifted(aggregate: Aggregate, column: str) -> bool:
    """Return whether a column is a time that was shifted to a local time zone."""
    definition = event_time.find_definition(aggregate, column)
    return definition is not None and any(
        node.function == "from_utc_timestamp" for node in definition[1].walk()
    )


def _check_script(query: PlannedQuery) -> Iterator[Finding]:
    """Report the first key of a query that is computed with a calendar function."""
    for operator in event_time.list_keyed_operators(query):
        for key in operator.keys:
            expression = _find_calendar_expression(operator, key.name)
            if expression is not None:
                yield CODE.warning(
                    f"{event_time.owner_label(query, operator)} groups by '{key.name}', which depends on the time "
                    "zone of the machine",
                    expression.span or event_time.find_span(query, operator),
                    label="by the session's time zone",
                    why="on a machine with another time zone, the same rows are in other groups; the checkpoint "
                    "does not store the time zone",
                    fix=f"set the time zone: .config('{SETTING}', 'UTC')",
                    query=query.name,
                )
                return


def _find_calendar_expression(operator: Aggregate | Deduplicate, name: str) -> Expression | None:
    definition = event_time.find_definition(operator, name)
    for node in definition[1].walk() if definition else ():
        reads_timestamp = any(
            (child.type or (child.column.type if child.column else "")) == "timestamp"
            for child in node.inputs
        )
        if reads_timestamp and (
            node.function in _CALENDAR or (node.function == "cast" and node.type in ("date", "string"))
        ):
            return node
    return None
