"""Severities that a spec sets for rules."""

from __future__ import annotations

from pathlib import Path

import pytest

from millstream.checking.check import check
from millstream.diagnostics.finding import Finding, Severity
from millstream.pipeline.spec_file import load_text

SPEC = """name: shop
rules: {RULES}
sources:
  orders:
    kafka: {bootstrap_servers: "localhost:9092", subscribe: orders}
    schema: {user: string, amount: double, ts: timestamp}
  idle: {rate: {rows_per_second: 1}}
views:
  per_user: SELECT window(ts, '1 minute') AS m, count(*) AS n FROM orders GROUP BY 1
queries:
  per_user: {output_mode: update, to: {console: {}}}
"""


def list_findings(rules: str, spec: str = SPEC) -> list[Finding]:
    return check(load_text("pipeline.yml", spec.replace("{RULES}", rules), Path("nowhere"), {})).findings


def list_codes(rules: str) -> list[tuple[str, str]]:
    return [(finding.code, finding.severity.value) for finding in list_findings(rules)]


@pytest.mark.parametrize("severity", ["info", "warning", "error"])
def test_a_finding_is_as_grave_as_the_spec_says(severity: str) -> None:
    assert list_codes(f"{{MS106: {severity}}}") == [("MS106", severity), ("MS201", "error")]


def test_what_is_ignored_is_not_told() -> None:
    assert list_codes("{MS106: ignore, MS201: ignore}") == []


def test_a_code_that_no_rule_has_is_a_finding_with_the_nearest_code() -> None:
    (finding, *_) = list_findings("{MS10: ignore}")

    assert (finding.code, finding.severity) == ("MS016", Severity.ERROR)
    assert finding.fix.startswith("write MS")


@pytest.mark.parametrize("code", ["MS103", "MS104", "MS105", "MS102", "MS107"])
def test_what_spark_refuses_or_may_not_run_stays_an_error(code: str) -> None:
    assert ("MS017", "error") in list_codes(f"{{{code}: warning}}")


def test_saying_that_an_error_is_one_is_no_mistake() -> None:
    assert list_codes("{MS103: error, MS106: ignore, MS201: ignore}") == []


def test_an_unreadable_query_is_an_error_whatever_the_spec_says() -> None:
    spec = SPEC.replace(
        "SELECT window(ts, '1 minute') AS m, count(*) AS n FROM orders GROUP BY 1", "SELECT ("
    )

    errors = {
        finding.code
        for finding in list_findings("{MS103: ignore}", spec)
        if finding.severity is Severity.ERROR
    }

    assert errors == {"MS103", "MS017"}


def test_a_severity_that_is_none_is_a_wrong_value() -> None:
    (finding,) = list_findings("{MS106: loud}")

    assert finding.code == "MS003"
    assert "ignore" in f"{finding.message}{finding.fix}"
