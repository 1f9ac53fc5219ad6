"""Each cause is told once: where a rule names it with its cure, Spark's own words are left out."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from millstream.analysis.pages import refused
from millstream.diagnostics.finding import Severity

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from millstream.diagnostics.finding import Finding, Span

_SOURCE = re.compile(r"source '[^']*'")
_QUERY = re.compile(r"\b(?:query|queries) '[^']*'")


def once(
    rules: Sequence[Finding], verdict: Sequence[Finding], phrases: Mapping[str, Sequence[str]]
) -> list[Finding]:
    """The findings of rules and of Spark, each cause once.

    Only an error of a rule takes the place of Spark's words: a finding that was allowed or made less than an error
    does not hide that Spark refuses. It does so when it marks the same line or is about the same source, or when it
    concerns the same query and is of a rule whose page says that Spark refuses, or whose `phrases` are in what Spark
    said.
    """
    errors = [found for found in rules if found.severity is Severity.ERROR]
    kept = [said for said in verdict if not any(_same(said, error, phrases) for error in errors)]
    return _distinct([*rules, *kept])


def _same(said: Finding, error: Finding, phrases: Mapping[str, Sequence[str]]) -> bool:
    if said.span and error.span and _meet(said.span, error.span):
        return True
    source = _SOURCE.match(said.message)
    if source and source[0] in error.message:
        return True
    if said.query is None or said.query != error.query:
        return False
    spoken = any(phrase in f"{said.message}\n{said.why}" for phrase in phrases.get(error.code, ()))
    return spoken or refused(error.code)


def _meet(one: Span, other: Span) -> bool:
    """Do two spans mark a line together?"""
    return one.file == other.file and one.line <= other.end_line and other.line <= one.end_line


def _distinct(findings: Sequence[Finding]) -> list[Finding]:
    """One finding of those that differ only in the query: a view's fault is one, however many queries read it."""
    found: dict[object, Finding] = {}
    for one in findings:
        message = _QUERY.sub("query", one.message) if one.span else one.message
        found.setdefault((one.code, one.span, message, one.severity), one)
    return list(found.values())
