"""From what Spark remembers of an operator's or expression's origin to a place in the user's files."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.diagnostics.finding import Span

# As Scala prints it: `Origin(line, column, start, stop, sql, …, stackTrace, (call, file:line), …)`.
_SQL = re.compile(r"^Origin\((?:Some\(\d+\)|None),(?:Some\(\d+\)|None),Some\((\d+)\),Some\((\d+)\),Some\(")
_CALL = re.compile(r"Some\(\((\w*)(?::(\w+))?,([^()]*):(\d+)\)\),(?:Some\(\w+\)|None)\)$")


@dataclass(frozen=True)
class Stretch:
    """Characters `start` up to `stop` of some SQL text; `origin` is Spark's own words, which hold the text."""

    start: int
    stop: int
    origin: str

    def of(self, text: str) -> bool:
        """Is it a stretch of this text?"""
        return f"),Some({text})," in self.origin


@dataclass(frozen=True)
class Call:
    """A call in a Python file."""

    method: str
    file: str
    line: int
    processor: str = ""
    """The class of the stateful processor that it was given."""


def parse(origin: str) -> Stretch | Call | None:
    """What an origin says of its place, if anything."""
    if found := _SQL.match(origin):
        return Stretch(int(found[1]), int(found[2]) + 1, origin)
    if found := _CALL.search(origin):
        return Call(found[1], found[3], int(found[4]), found[2] or "")
    return None


@dataclass(frozen=True)
class Where:
    """How places in plans become places in files. This base knows none: a plan read with it has no spans."""

    formats: Mapping[str, str] = field(default_factory=dict)
    """Spark's or the spec's name of the reader of each known source, by the source's name."""
    views: frozenset[str] = frozenset()
    """Names that Spark has temporary views for, and whose operators are told apart by them."""

    def sql(self, stretch: Stretch) -> Span | None:  # noqa: ARG002 - the base knows none
        """Where a stretch of SQL stands."""
        return None

    def call(self, call: Call) -> Span | None:  # noqa: ARG002 - the base knows none
        """Where a call stands."""
        return None

    def named(self, name: str) -> Span | None:  # noqa: ARG002 - the base knows none
        """Where a source or view is defined: for what has no place of its own."""
        return None

    def watermark(self, source: str) -> Span | None:  # noqa: ARG002 - the base knows none
        """Where the watermark of a source of the spec stands."""
        return None

    def deduplication(self, source: str) -> Span | None:  # noqa: ARG002 - the base knows none
        """Where the deduplication of a source of the spec stands."""
        return None
