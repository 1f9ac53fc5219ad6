"""Report each cause once: a rule's error with its fix replaces Spark's own message."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from millstream.analysis.rule_pages import is_refused_by_spark
from millstream.diagnostics.finding import Severity

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from millstream.diagnostics.finding import Finding, Span

_SOURCE = re.compile(r"source '[^']*'")
_QUERY = re.compile(r"\b(?:query|queries) '[^']*'")


def deduplicate_findings(
    rules: Sequence[Finding], verdict: Sequence[Finding], phrases: Mapping[str, Sequence[str]]
) -> list[Finding]:
    """Merge the findings of rules and of Spark, so that each cause is reported once.

    Only a rule's error replaces Spark's message. A finding that was suppressed or downgraded does not hide that
    Spark refuses the query. An error replaces the message if it marks the same line or the same source, or if it
    concerns the same query and its rule's page says that Spark refuses, or one of its `phrases` is in Spark's
    message.
    """
    errors = [finding for finding in rules if finding.severity is Severity.ERROR]
    spark_findings = [
        spark_finding
        for spark_finding in verdict
        if not any(_has_same_cause(spark_finding, error, phrases) for error in errors)
    ]
    return _drop_duplicates([*rules, *spark_findings])


def _has_same_cause(spark_finding: Finding, error: Finding, phrases: Mapping[str, Sequence[str]]) -> bool:
    if spark_finding.span and error.span and _overlap(spark_finding.span, error.span):
        return True
    source_match = _SOURCE.match(spark_finding.message)
    if source_match and source_match[0] in error.message:
        return True
    if spark_finding.query is None or spark_finding.query != error.query:
        return False
    has_phrase = any(
        phrase in f"{spark_finding.message}\n{spark_finding.why}" for phrase in phrases.get(error.code, ())
    )
    return has_phrase or is_refused_by_spark(error.code)


def _overlap(span: Span, other: Span) -> bool:
    """Return whether two spans share a line."""
    return span.file == other.file and span.line <= other.end_line and other.line <= span.end_line


def _drop_duplicates(findings: Sequence[Finding]) -> list[Finding]:
    """Keep one of the findings that differ only in the query, because several queries may read the same view."""
    unique: dict[object, Finding] = {}
    for finding in findings:
        message = _QUERY.sub("query", finding.message) if finding.span else finding.message
        unique.setdefault((finding.code, finding.span, message, finding.severity), finding)
    return list(unique.values())
