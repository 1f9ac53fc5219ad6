"""Spark's message is left out if a rule reports the same cause with a fix."""

from __future__ import annotations

from dataclasses import replace

from millstream.analysis.deduplicate import deduplicate_findings
from millstream.diagnostics.finding import Finding, Severity, Span

PHRASES = {"MS201": ("without watermark",)}
RULE = Finding(
    "MS201", "missing-watermark", Severity.ERROR, "no watermark", Span("p.yml", 5, 1, 5, 9), query="n"
)
SAID = Finding(
    "MS311",
    "spark-refuses",
    Severity.ERROR,
    "query 'n' cannot run in output mode append",
    Span("p.yml", 9, 1, 9, 9),
    why="Spark says: streaming aggregations without watermark",
    query="n",
)


def codes(rules: list[Finding], verdict: list[Finding]) -> list[str]:
    return [finding.code for finding in deduplicate_findings(rules, verdict, PHRASES)]


def test_a_rule_that_stands_for_a_phrase_of_spark_takes_its_place() -> None:
    assert codes([RULE], [SAID]) == ["MS201"]


def test_another_cause_in_the_same_query_is_told() -> None:
    assert codes([RULE], [replace(SAID, why="Spark says: sorting is not supported")]) == ["MS201", "MS311"]


def test_the_same_phrase_in_another_query_is_told() -> None:
    assert codes([RULE], [replace(SAID, query="other")]) == ["MS201", "MS311"]


def test_a_rule_that_marks_the_same_line_takes_its_place() -> None:
    assert codes([replace(RULE, code="MS107", span=SAID.span)], [replace(SAID, query=None)]) == ["MS107"]


def test_a_warning_hides_nothing() -> None:
    assert codes([replace(RULE, severity=Severity.WARNING)], [SAID]) == ["MS201", "MS311"]


def test_a_source_that_cannot_be_made_is_told_once() -> None:
    result = replace(SAID, code="MS111", message="source 'prices': there is no file", query=None)
    rule = replace(RULE, code="MS502", message="source 'prices' reads data, which does not exist", query=None)

    assert codes([rule], [result]) == ["MS502"]
    assert codes([replace(rule, message="source 'other' reads data")], [result]) == ["MS502", "MS111"]


def test_one_fault_that_two_queries_meet_is_one() -> None:
    finding = replace(SAID, message="query 'm' cannot run in output mode append", query="m")

    assert codes([], [SAID, finding]) == ["MS311"]


def test_two_faults_of_one_line_are_two() -> None:
    assert codes([RULE, replace(RULE, message="another source has no watermark")], []) == ["MS201", "MS201"]
