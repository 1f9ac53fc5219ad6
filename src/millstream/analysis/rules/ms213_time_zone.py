"""Days and hours that depend on a time zone nobody has chosen, and days cut at midnight UTC where another zone is."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from millstream.analysis import eventtime
from millstream.analysis.dataflow import Aggregate, Deduplicate, WindowKind
from millstream.analysis.facts import Code

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.dataflow import Expression, PlannedQuery
    from millstream.analysis.facts import Facts
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)
SETTING = "spark.sql.session.timeZone"

# Parts of a calendar that Spark takes from an instant by the session's time zone.
_CALENDAR = frozenset(
    {"hour", "month", "quarter", "year", "trunc", "trunc_timestamp", "trunc_date", "to_date", "date_format"}
    | {"day_of_week", "week_day", "day_of_month", "day_of_year", "week_of_year"}
)
_UTC = frozenset({"utc", "z", "gmt", "etc/utc", "etc/gmt", "+00:00", "+0", "utc+0"})


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:
    """A spec runs in UTC unless it says otherwise; a script in the zone of whatever machine it is started on."""
    zone = query.spark.get(SETTING)
    if zone is not None and zone.lower() not in _UTC:
        yield from _days(query, zone)
    elif zone is None and facts is None:
        yield from _unchosen(query)


def _days(query: PlannedQuery, zone: str) -> Iterator[Finding]:
    """Windows of days: Spark cuts them from 1970-01-01 00:00 UTC, whatever the session's zone is."""
    for one in query.of(Aggregate):
        window = one.window
        whole = window is not None and window.kind is WindowKind.TUMBLING and window.length is not None
        if (
            not whole
            or window is None
            or window.length is None
            or window.length % timedelta(days=1)
            or _shifted(one)
        ):
            continue
        days = window.length // timedelta(days=1)
        yield CODE.warning(
            f"{eventtime.who(query, one)} cuts {'days' if days == 1 else f'{days} days'} at midnight UTC, and the "
            f"time zone is {zone}",
            eventtime.place(query, one),
            label="cut here",
            why="window() counts from 1970-01-01 00:00 UTC and does not follow the session's time zone",
            fix=f"shift '{window.column}' by from_utc_timestamp(…, '{zone}') before the watermark, or set the zone "
            "to UTC",
            query=query.name,
        )


def _shifted(one: Aggregate) -> bool:
    """Does the window name a start of its own? Spark subtracts it from the time before it cuts."""
    for under in one.walk():
        for cut in (inside for top in under.expressions for inside in top.walk()):
            if cut.function == "remainder" and cut.inputs[0].function == "subtract":
                return any(term.function == "literal" and term.value != 0 for term in cut.inputs[0].inputs)
    return False


def _unchosen(query: PlannedQuery) -> Iterator[Finding]:
    """Keys made of an instant's calendar; the first of a query."""
    for one in eventtime.keyed(query):
        for key in one.keys:
            made = _made(one, key.name)
            if made is not None:
                yield CODE.warning(
                    f"{eventtime.who(query, one)} groups by '{key.name}', which depends on the time zone of the "
                    "machine",
                    made.span or eventtime.place(query, one),
                    label="by the session's time zone",
                    why="on a machine in another zone the same rows fall into other groups; the checkpoint does not "
                    "keep the zone",
                    fix=f"set it: .config('{SETTING}', 'UTC')",
                    query=query.name,
                )
                return


def _made(one: Aggregate | Deduplicate, name: str) -> Expression | None:
    found = eventtime.definition(one, name)
    for inside in found[1].walk() if found else ():
        instant = any(
            (under.type or (under.column.type if under.column else "")) == "timestamp"
            for under in inside.inputs
        )
        if instant and (
            inside.function in _CALENDAR or (inside.function == "cast" and inside.type in ("date", "string"))
        ):
            return inside
    return None
