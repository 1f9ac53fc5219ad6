"""Event time read in another unit than its column's name says: milliseconds taken for seconds."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from millstream.analysis import eventtime
from millstream.analysis.amend import marked, replaced
from millstream.analysis.dataflow import Watermark
from millstream.analysis.facts import Code

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.dataflow import Expression, PlannedQuery
    from millstream.analysis.facts import Facts
    from millstream.diagnostics.finding import Edit, Finding

CODE = Code.of(__name__)

# A number's unit as the end of its column's name tells it, in steps of a second.
_UNITS = {
    "millis": re.compile(r"(_|^)(ms|millis|milliseconds?)$|Millis$|Ms$"),
    "micros": re.compile(r"(_|^)(us|micros|microseconds?)$|Micros$"),
    "nanos": re.compile(r"(_|^)(ns|nanos|nanoseconds?)$|Nanos$"),
    "seconds": re.compile(r"(_|^)(s|secs?|seconds?)$|Seconds$|Secs$"),
}
# What each function takes a number for; a plain cast takes it for seconds.
_READS = {
    "cast": "seconds",
    "seconds_to_timestamp": "seconds",
    "timestamp_seconds": "seconds",
    "millis_to_timestamp": "millis",
    "timestamp_millis": "millis",
    "micros_to_timestamp": "micros",
    "timestamp_micros": "micros",
    "from_unix_time": "seconds",
    "from_unixtime": "seconds",
}
_NUMBERS = ("int", "bigint", "double", "float", "decimal")


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:
    """Numbers below a watermark, and above the source, that are made into a time as they are."""
    for mark in query.of(Watermark):
        marked = mark.column(mark.event_time)
        for operator in eventtime.below(mark):
            for top in operator.expressions:
                for one in top.walk():
                    unit, taken = _read(one)
                    number = one.inputs[0].column if one.inputs else None
                    if unit == taken or not number or not marked or not number.origins & marked.origins:
                        continue
                    yield CODE.warning(
                        f"event time '{mark.event_time}' reads '{number.name}' as {_WORDS[taken]}, "
                        f"and its name says {_WORDS[unit]}",
                        one.span or eventtime.place(query, operator),
                        label="read here",
                        why=_why(unit, taken),
                        fix=f"write {_cure(unit, number.name)}",
                        edit=_edit(facts, one, unit, number.name),
                        query=query.name,
                    )


_WORDS = {"seconds": "seconds", "millis": "milliseconds", "micros": "microseconds", "nanos": "nanoseconds"}
_ORDER = ("nanos", "micros", "millis", "seconds")


def _read(one: Expression) -> tuple[str, str]:
    """The unit that a number's name says, and the one it is read in; the same where nothing can be told."""
    taken = _READS.get(one.function, "")
    inside = one.inputs[0] if one.inputs else None
    if (
        not taken
        or inside is None
        or inside.column is None
        or not one.type.startswith(("timestamp", "string"))
    ):
        return "", ""
    if not (inside.column.type or inside.type).startswith(_NUMBERS):
        return "", ""
    name = inside.column.name
    unit = next((unit for unit, pattern in _UNITS.items() if pattern.search(name)), taken)
    return unit, taken


def _why(unit: str, taken: str) -> str:
    if _ORDER.index(unit) < _ORDER.index(taken):
        return "the watermark leaps thousands of years ahead, and every row after the first batch is dropped as late"
    return "all rows lie within days of 1970: windows hold years, and the watermark hardly moves"


def _cure(unit: str, name: str) -> str:
    return f"'timestamp_micros({name} DIV 1000)'" if unit == "nanos" else f"'timestamp_{unit}({name})'"


def _edit(facts: Facts | None, one: Expression, unit: str, name: str) -> Edit | None:
    """Only a plain cast: what else stands there may be meant."""
    text = marked(facts, one.span)
    cast = re.compile(rf"cast\(\s*{re.escape(name)}\s+as\s+timestamp\s*\)", re.IGNORECASE)
    if unit == "nanos" or not cast.fullmatch(text):
        return None
    return replaced(facts, one.span, text, f"timestamp_{unit}({name})", safe=False)
