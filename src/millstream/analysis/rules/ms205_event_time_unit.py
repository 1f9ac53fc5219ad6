"""An event time is read in a different unit than its column's name says, such as milliseconds as seconds."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from millstream.analysis.query import event_time
from millstream.analysis.query.plan_model import WatermarkOperator
from millstream.analysis.query.throwing_expressions import get_type
from millstream.analysis.rule_context import Code
from millstream.analysis.sql_edits import read_marked_text, replace_in_marked_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.query.plan_model import Expression, PlannedQuery
    from millstream.analysis.rule_context import Facts
    from millstream.diagnostics.finding import Edit, Finding

CODE = Code.of(__name__)

# The unit of a number, from the end of its column's name.
_UNITS = {
    "millis": re.compile(r"(_|^)(ms|millis|milliseconds?)$|Millis$|Ms$"),
    "micros": re.compile(r"(_|^)(us|micros|microseconds?)$|Micros$"),
    "nanos": re.compile(r"(_|^)(ns|nanos|nanoseconds?)$|Nanos$"),
    "seconds": re.compile(r"(_|^)(s|secs?|seconds?)$|Seconds$|Secs$"),
}
# The unit in which each function reads a number; a plain cast and to_timestamp read seconds.
_ASSUMED_UNITS = {
    "cast": "seconds",
    "to_timestamp": "seconds",
    "try_to_timestamp": "seconds",
    "seconds_to_timestamp": "seconds",
    "timestamp_seconds": "seconds",
    "millis_to_timestamp": "millis",
    "timestamp_millis": "millis",
    "micros_to_timestamp": "micros",
    "timestamp_micros": "micros",
    "from_unix_time": "seconds",
    "from_unixtime": "seconds",
}
_NUMBER_TYPES = ("int", "bigint", "double", "float", "decimal")


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:
    """Check numbers between the source and a watermark that are converted to a time without scaling."""
    for watermark in query.of(WatermarkOperator):
        event_time_column = watermark.column(watermark.event_time)
        for operator in event_time.walk_below(watermark):
            for expression in operator.expressions:
                for node in expression.walk():
                    unit, assumed = _compare_units(node)
                    if unit == assumed or not event_time_column:
                        continue
                    number = node.inputs[0]
                    columns = [leaf.column for leaf in number.walk() if leaf.column]
                    if not any(column.origins & event_time_column.origins for column in columns):
                        continue
                    yield CODE.warning(
                        f"event time '{watermark.event_time}' reads '{number.text}' as {_UNIT_NAMES[assumed]}, "
                        f"but its name says {_UNIT_NAMES[unit]}",
                        node.span or event_time.find_span(query, operator),
                        label="read here",
                        why=_find_reason(unit, assumed),
                        fix=f"write {_suggest_fix(unit, number.text)}",
                        edit=_build_edit(facts, node, unit, number.text),
                        query=query.name,
                    )


_UNIT_NAMES = {
    "seconds": "seconds",
    "millis": "milliseconds",
    "micros": "microseconds",
    "nanos": "nanoseconds",
}
_ORDER = ("nanos", "micros", "millis", "seconds")


def _compare_units(expression: Expression) -> tuple[str, str]:
    """Return the unit in a number's name and the unit it is read in; equal if either is unknown."""
    assumed = _ASSUMED_UNITS.get(expression.function, "")
    child = expression.inputs[0] if expression.inputs else None
    if (
        not assumed
        or child is None
        or child.function not in ("column", "get_struct_field")
        or not expression.type.startswith(("timestamp", "string"))
        or not get_type(child).startswith(_NUMBER_TYPES)
    ):
        return "", ""
    name = child.column.name if child.column else child.text.rpartition(".")[2]
    unit = next((unit for unit, pattern in _UNITS.items() if pattern.search(name)), assumed)
    return unit, assumed


def _find_reason(unit: str, assumed: str) -> str:
    steps = _ORDER.index(assumed) - _ORDER.index(unit)
    if steps > 0:
        factor = 1000**steps
        seconds = f"{600 / factor:.7f}".rstrip("0")
        return (
            f"event times pass {factor:,} times too fast: a watermark delay of ten minutes waits only "
            f"{seconds} seconds, and rows that arrive later than that are dropped as late"
        )
    return (
        "all event times are within a few days of 1970, so the watermark hardly advances, and one window contains "
        "the rows of years"
    )


def _suggest_fix(unit: str, name: str) -> str:
    return f"'timestamp_micros({name} DIV 1000)'" if unit == "nanos" else f"'timestamp_{unit}({name})'"


def _build_edit(facts: Facts | None, expression: Expression, unit: str, name: str) -> Edit | None:
    """Replace a plain cast only; anything else may be intended."""
    text = read_marked_text(facts, expression.span)
    cast = re.compile(rf"cast\(\s*{re.escape(name)}\s+as\s+timestamp\s*\)", re.IGNORECASE)
    if unit == "nanos" or not cast.fullmatch(text):
        return None
    return replace_in_marked_text(facts, expression.span, text, f"timestamp_{unit}({name})", safe=False)
