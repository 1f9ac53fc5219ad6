"""The words of Databricks in statements of a declarative pipeline, and Spark's words for them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from millstream.checking.scripts.declarative.expectations import (
    EXPECTATION,
    VIOLATION,
    list_expectation_clauses,
)
from millstream.checking.scripts.interception.absent import MARK
from millstream.checking.scripts.interception.sql_commands import DATABRICKS_READERS
from millstream.checking.scripts.sql_text import find_closing_bracket

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.checking.scripts.declarative.expectations import DeclaredExpectation

# What begins a statement: a dataset of Databricks, whose words Spark does not have.
_HEAD = re.compile(
    r"CREATE(?P<replace>\s+OR\s+RE(?:FRESH|PLACE))?(?P<private>\s+(?:TEMPORARY|PRIVATE))?"
    r"(?:(?P<streaming>\s+(?:STREAMING|INCREMENTAL))?(?P<live>\s+LIVE)\s+(?P<kind>TABLE|VIEW)"
    r"|\s+STREAMING\s+TABLE|\s+MATERIALIZED\s+VIEW)\b",
    re.IGNORECASE,
)
# The former word for a streaming table.
_INCREMENTAL = re.compile(r"\bINCREMENTAL(?=\s+LIVE\b)", re.IGNORECASE)
_CHANGES = re.compile(r"\bAPPLY(\s+)CHANGES(?=\s+INTO\b)", re.IGNORECASE)
# Spark's word for a stream stands before a table only.
_STREAM_OF_FUNCTION = re.compile(rf"\bSTREAM(?=\s+(?:{'|'.join(DATABRICKS_READERS)})\s*\()", re.IGNORECASE)
_SETTING = re.compile(r"\$\{([\w.]+)\}")
NO_SETTINGS: Mapping[str, str] = MappingProxyType({})
# What a schema of Databricks says of a column besides its type, and of the keys of its table.
_GENERATED = re.compile(
    r"\bGENERATED\s+(?:ALWAYS|BY\s+DEFAULT)\s+AS\s*(?:IDENTITY\s*)?(?:\((?:[^()]|\([^()]*\))*\))?",
    re.IGNORECASE,
)
_KEYS = re.compile(
    r",\s*(?:CONSTRAINT\s+\S+\s+)?(?:PRIMARY|FOREIGN)\s+KEY\s*\([^()]*\)(?:\s*REFERENCES\s+[\w.`]+(?:\s*\([^()]*\))?)?"
    r"(?:\s+(?:NOT\s+ENFORCED|RELY|NORELY|TIMESERIES|DEFERRABLE|INITIALLY\s+DEFERRED))*",
    re.IGNORECASE,
)
# The folder of a table, the columns that its statement gives it, and its query.
_LOCATION = re.compile(r"\bLOCATION\s+(?:'[^']*'|\"[^\"]*\")", re.IGNORECASE)
_COLUMNS = re.compile(r"\s*(?:IF\s+NOT\s+EXISTS\s+)?[\w.`${}]+\s*(\()", re.IGNORECASE)
_QUERY = re.compile(r"\bAS\s+(?:--[^\n]*\n\s*)*(?:SELECT|WITH|FROM)\b", re.IGNORECASE)
_EMPTY_LIST = re.compile(r"\(\s*\)")


@dataclass(frozen=True)
class SparkStatement:
    """A statement in Spark's words, which has the lines of the statement of Databricks.

    It has the same length too, unless it names a setting.
    """

    text: str
    is_live_table: bool = False
    """True for a live table that is no streaming table: a materialized view."""
    is_changed: bool = False
    """True if it has words of Databricks."""
    expectations: tuple[DeclaredExpectation, ...] = ()


def in_words_of_spark(statement: str, settings: Mapping[str, str] = NO_SETTINGS) -> SparkStatement:
    """Return a statement of Databricks in Spark's words. Expectations decide about rows, and are left out.

    `settings` are those of the pipeline, which a statement names as `${…}`. One that is not known gets a stand-in.
    """
    text, is_live_table = statement, False
    expectations: tuple[DeclaredExpectation, ...] = ()
    if head := _HEAD.match(statement):
        text = _INCREMENTAL.sub("STREAMING  ", text, count=1)
        is_live_view = (head["kind"] or "").upper() == "VIEW"
        is_live_table = head["live"] is not None and not head["streaming"] and not is_live_view
        for part in ("replace", "live", "streaming" if is_live_view else "private"):
            text = _blank(text, *head.span(part))
        expectations = tuple(
            replace(expectation, condition=_with_settings(expectation.condition, settings))
            for expectation in list_expectation_clauses(text)
        )
        text = _without_expectations(text)
        query = _QUERY.search(text)
        stop = query.start() if query is not None else len(text)
        if location := _LOCATION.search(text, head.end(), stop):
            text = _blank(text, *location.span())
        if query is not None and is_live_table:
            text = _without_columns(text, head.end(), stop)
    text = _STREAM_OF_FUNCTION.sub("      ", text)
    text = _CHANGES.sub(r"AUTO \1CDC    ", text)
    is_changed = text != statement
    return SparkStatement(_with_settings(text, settings), is_live_table, is_changed, expectations)


def _with_settings(text: str, settings: Mapping[str, str]) -> str:
    return _SETTING.sub(lambda setting: settings.get(setting[1], MARK), text)


def as_schema_of_spark(schema: str) -> str:
    """Return the DDL of a table's columns without what only Databricks has: generated columns and keys."""
    return _GENERATED.sub("", _KEYS.sub("", schema))


def _without_columns(text: str, start: int, stop: int) -> str:
    """Return a statement without the columns of its table, which Spark takes from the query of a live table.

    Generated columns are not in the query, so a list with one of them stays.
    """
    columns = _COLUMNS.match(text, start, stop)
    if columns is None:
        return text
    end = find_closing_bracket(text, columns.end())
    if end > stop or _GENERATED.search(text, columns.end(), end):
        return text
    return _blank(text, columns.start(1), end)


def _without_expectations(text: str) -> str:
    """Return a statement without its expectations, and without the list that held only them."""
    start = None
    while expectation := EXPECTATION.search(text):
        start = expectation.start() if start is None else start
        stop = find_closing_bracket(text, expectation.end())
        violation = VIOLATION.match(text, stop)
        stop = violation.end() if violation else stop
        comma = re.compile(r"\s*,").match(text, stop)
        text = _blank(text, expectation.start(), comma.end() if comma else stop)
    if start is None:
        return text
    before = text[:start].rstrip()
    if before.endswith(",") and text[start:].lstrip().startswith(")"):
        text = _blank(text, len(before) - 1, len(before))
        before = before[:-1].rstrip()
    opened = before.rfind("(")
    empty = _EMPTY_LIST.match(text, opened) if opened >= 0 else None
    return _blank(text, *empty.span()) if empty else text


def _blank(text: str, start: int, stop: int) -> str:
    """Return a text with blanks in place of a part, on the same lines."""
    if start < 0:
        return text
    return text[:start] + re.sub(r"[^\n]", " ", text[start:stop]) + text[stop:]
