"""Every format says which queries of a script were checked, and why the others were not."""

from __future__ import annotations

import json
from xml.etree import ElementTree as ET

import pytest

from millstream.checking.batch_check import NOTHING_JUDGED, CheckReport, find_exit_code
from millstream.checking.check import CheckResult
from millstream.checking.targets import CheckTarget, TargetKind
from millstream.diagnostics.finding import Span
from millstream.diagnostics.judged_query import JudgedQuery, format_judged, judged_to_json
from millstream.diagnostics.render import render
from millstream.diagnostics.spec_codes import build_finding

QUERIES = (
    JudgedQuery("clicks", Span.point("job.py", 80)),
    JudgedQuery("orders", Span.point("job.py", 88), "its schema comes from a registry"),
)
AS_JSON = [judged_to_json(query, "job.py") for query in QUERIES]


def test_text_counts_the_queries_and_names_those_left_out() -> None:
    assert format_judged(QUERIES) == (
        "1 of 2 queries judged; 'orders' (job.py:88) not: its schema comes from a registry"
    )
    assert format_judged(QUERIES[:1]) == "1 of 1 query judged"
    assert format_judged(()) == "no query judged"


def test_json_has_every_query_with_its_place() -> None:
    queries = json.loads(render([], {}, "json", judged=AS_JSON))["queries"]

    assert [(query["query"], query["line"], query["judged"]) for query in queries] == [
        ("clicks", 80, True),
        ("orders", 88, False),
    ]


def test_sarif_notifies_of_a_query_that_was_not_checked() -> None:
    (run,) = json.loads(render([], {}, "sarif", judged=AS_JSON))["runs"]
    (invocation,) = run["invocations"]
    (notification,) = invocation["toolExecutionNotifications"]

    assert invocation["properties"] == {"queries": 2, "queriesJudged": 1}
    assert (
        notification["message"]["text"] == "query 'orders' was not checked: its schema comes from a registry."
    )
    assert notification["locations"][0]["physicalLocation"]["region"] == {"startLine": 88}


def test_junit_skips_a_query_that_was_not_checked() -> None:
    root = ET.fromstring(render([], {}, "junit", judged=AS_JSON))

    assert root.attrib["skipped"] == "1"
    assert [(case.attrib["name"], case.find("skipped") is not None) for case in root.iter("testcase")] == [
        ("query clicks line 80", False),
        ("query orders line 88", True),
    ]


def report(*judged: JudgedQuery, has_error: bool = False) -> CheckReport:
    findings = [build_finding("MS114", "it fails")] if has_error else []
    return CheckReport(
        CheckTarget(TargetKind.SCRIPT, None), CheckResult(findings, (), [], (), {}, judged=judged)
    )  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("reports", "code"),
    [
        ([report(QUERIES[0])], 0),
        ([report(QUERIES[1])], NOTHING_JUDGED),
        ([report()], NOTHING_JUDGED),
        ([report(QUERIES[1]), report(QUERIES[0])], 0),
        ([report(), report(QUERIES[1])], NOTHING_JUDGED),
        ([report(QUERIES[1]), report(has_error=True)], 1),
        ([report(QUERIES[1], has_error=True)], 1),
    ],
)
def test_nothing_judged_has_its_own_exit_code(reports: list[CheckReport], code: int) -> None:
    assert find_exit_code(reports) == code
