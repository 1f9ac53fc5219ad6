"""Parse Spark's origin of an operator or expression, and map it to a place in the user's files."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.diagnostics.finding import Span

# Scala's text of an origin: `Origin(line, column, start, stop, sql, …, stackTrace, (call, file:line), …)`.
_SQL = re.compile(r"^Origin\((?:Some\(\d+\)|None),(?:Some\(\d+\)|None),Some\((\d+)\),Some\((\d+)\),Some\(")
_CALL = re.compile(r"Some\(\((\w*)(?::(\w+))?,([^()]*):(\d+)\)\),(?:Some\(\w+\)|None)\)$")


@dataclass(frozen=True)
class SqlSpan:
    """Characters `start` to `stop` of an SQL text. `origin` is Spark's text, which contains the SQL."""

    start: int
    stop: int
    origin: str

    def of(self, text: str) -> bool:
        """Return whether this is a part of the text."""
        return f"),Some({text})," in self.origin


@dataclass(frozen=True)
class SourceCall:
    """A call in a Python file."""

    method: str
    file: str
    line: int
    processor: str = ""
    """The class of the stateful processor that was passed to it."""


def parse(origin: str) -> SqlSpan | SourceCall | None:
    """Return the place in an origin, or None if it has none."""
    if match := _SQL.match(origin):
        return SqlSpan(int(match[1]), int(match[2]) + 1, origin)
    if match := _CALL.search(origin):
        return SourceCall(match[1], match[3], int(match[4]), match[2] or "")
    return None


@dataclass(frozen=True)
class SourcePlaces:
    """Maps places in plans to places in files. This base class knows none, so that its plans have no spans."""

    formats: Mapping[str, str] = field(default_factory=dict)
    """The format of each known source, as named by Spark or the spec, by the source's name."""
    views: frozenset[str] = frozenset()
    """Names of temporary views, which identify the operators inside them."""

    def sql(self, stretch: SqlSpan) -> Span | None:  # noqa: ARG002 - the base knows none
        """Return the span of a part of an SQL text."""
        return None

    def call(self, call: SourceCall) -> Span | None:  # noqa: ARG002 - the base knows none
        """Return the span of a call."""
        return None

    def span_of_name(self, name: str) -> Span | None:  # noqa: ARG002 - the base knows none
        """Return the span of a source or view, for operators without a place."""
        return None

    def watermark(self, source: str) -> Span | None:  # noqa: ARG002 - the base knows none
        """Return the span of a source's watermark in the spec."""
        return None

    def deduplication(self, source: str) -> Span | None:  # noqa: ARG002 - the base knows none
        """Return the span of a source's deduplication in the spec."""
        return None

    def expectation(self, source: str, name: str) -> Span | None:  # noqa: ARG002 - the base knows none
        """Return the span of the condition of a source's expectation in the spec."""
        return None
