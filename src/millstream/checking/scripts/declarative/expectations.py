"""Expectations of Databricks about rows: those that drop rows, or fail, keep rows of NULLs from a dataset."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException

from millstream.checking.scripts.interception.placeholders import Unknown
from millstream.checking.scripts.sql_text import find_closing_bracket

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pyspark.sql import DataFrame

EXPECTATIONS = "_millstream_expectations"
"""The attribute of a function with its expectations: a label, a condition, and the name of the decorator."""
DECORATORS = tuple(
    f"expect{many}{action}" for many in ("", "_all") for action in ("", "_or_drop", "_or_fail")
)
EXPECTATION = re.compile(r"\bCONSTRAINT\s+(?:`[^`]*`|\w+)\s+EXPECT\s*\(", re.IGNORECASE)
"""What begins an expectation in SQL, up to its condition."""
VIOLATION = re.compile(r"\s*ON\s+VIOLATION\s+(?:FAIL\s+UPDATE|DROP\s+ROW)\b", re.IGNORECASE)
"""What makes an expectation in SQL drop rows, or fail."""
_REFUSING = ("_or_drop", "_or_fail")


def list_refusing(function: Any) -> list[str]:
    """Return the conditions of a function's expectations that drop rows, or fail."""
    noted = getattr(function, EXPECTATIONS, ())
    return [condition for _, condition, decorator in noted if decorator.endswith(_REFUSING)]


def list_refusing_settings(settings: Mapping[str, Any]) -> list[str]:
    """Return the conditions among the settings of `create_streaming_table` that drop rows, or fail."""
    refusing = [value for name, value in settings.items() if name in DECORATORS and name.endswith(_REFUSING)]
    return [str(condition) for value in refusing if type(value) is dict for condition in value.values()]


def list_refusing_clauses(statement: str) -> Iterator[str]:
    """Yield the conditions of a statement's expectations that drop rows, or fail."""
    for expectation in EXPECTATION.finditer(statement):
        stop = find_closing_bracket(statement, expectation.end())
        if VIOLATION.match(statement, stop):
            yield statement[expectation.end() : stop - 1]


def keep_expected(frame: DataFrame | Unknown, conditions: Iterable[str]) -> DataFrame | Unknown:
    """Return the rows of a frame that meet some conditions. One that Spark cannot analyse is left out."""
    for condition in conditions:
        try:
            expected = frame.where(condition)
        except PySparkException:
            continue
        if not isinstance(expected, Unknown) or expected.probe is not None:
            frame = expected
    return frame
