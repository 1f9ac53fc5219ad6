"""A failed test as text, JSON and JUnit."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest

from millstream.testing.files.loader import load_text
from millstream.testing.model import Case, Outcome, StepResult
from millstream.testing.runner.compare import find_differences
from millstream.testing.runner.failure_report import format_report
from millstream.testing.runner.results import format_json, format_junit, list_load_errors, to_result

if TYPE_CHECKING:
    from millstream.testing.model import Row

TEXT = """\
pipeline:
  name: shop
  sources: {clicks: {kafka: {bootstrap_servers: h, subscribe: clicks}, schema: {id: string, at: timestamp}}}
  views: {funnel: "SELECT at AS window_start, 1 AS click_count FROM clicks"}
  queries: {funnel: {output_mode: update, to: {console: {}}}}
tests:
  a late click is dropped:
    steps:
      - feed: {clicks: [{id: a, at: "2026-01-01 12:01:00"}, {id: b, at: "2026-01-01 12:01:00"}]}
        expect: [{window_start: "2026-01-01 12:00:00", click_count: 1}]
      - crash: after_sink
      - feed: {clicks: [{record: {value: "{broken"}}]}
        expect: [{window_start: "2026-01-01 12:00:00", click_count: 1}]
        expect_dropped: 1
      - restart
"""


@pytest.fixture
def case() -> Case:
    (actual,) = load_text("tests/shop.yml", TEXT, Path("tests/shop.yml"), lambda _: {}).cases
    return actual


def failed_outcome(case: Case, *rows: Row) -> Outcome:
    """The test as it ends in its third step, which gives these rows."""
    at = datetime(2026, 1, 1, 11, 56, tzinfo=UTC)
    step_results = [
        StepResult(case.steps[0], (0, 1), None, {"": ()}),
        StepResult(case.steps[1], (), at, {"": ()}),
        StepResult(case.steps[2], (2,), at, {"": rows}),
    ]
    step_results[2] = replace(
        step_results[2], differences=find_differences(case.steps[2].expected, step_results[2], case)
    )
    return Outcome(case, tuple(step_results), 0.5)


def test_a_report_shows_all_steps_and_what_differs_in_one(case: Case) -> None:
    outcome = failed_outcome(case, {"window_start": datetime(2026, 1, 1, 12, tzinfo=UTC), "click_count": 2})

    assert (
        format_report(outcome)
        == """\
a late click is dropped
  tests/shop.yml:7, query 'funnel'

     step  batch  watermark            what happens
        1  0,1    -                    feed clicks {id: a, at: 2026-01-01 12:01:00} and 1 more
        2  -      2026-01-01 11:56:00  crash after_sink
=>      3  2      2026-01-01 11:56:00  feed clicks record {broken
        tests/shop.yml:12

        rows of query 'funnel':
          wanted                             got
          window_start         click_count   window_start         click_count
          2026-01-01 12:00:00  *1            2026-01-01 12:00:00  *2

        rows dropped as too late:
          wanted   got
          1        0

        4  -      not run              restart"""
    )


def test_no_line_is_wider_than_a_hundred_columns(case: Case) -> None:
    wide = failed_outcome(case, {"window_start": "x" * 300, "click_count": "y" * 300})
    step_result = replace(wide.results[2], error="a long story " * 30)
    text = replace(step_result, differences=find_differences(case.steps[2].expected, step_result, case))
    error = replace(wide, results=(*wide.results[:2], text))

    for outcome in (wide, error):
        assert max(len(line) for line in format_report(outcome).splitlines()) <= 100
    assert " ".join(format_report(error).split()).count("a long story") == 30


def test_colour_is_there_where_it_is_asked_for(case: Case) -> None:
    outcome = failed_outcome(case)

    assert "\x1b[" in format_report(outcome, color=True)
    assert "\x1b[" not in format_report(outcome)


def test_a_test_that_could_not_be_played_says_why(case: Case) -> None:
    outcome = Outcome(case, (), 0.1, fault="the pipeline does not start:\nno such function")

    assert format_report(outcome).splitlines()[2:] == [
        "",
        "  the pipeline does not start:",
        "  no such function",
    ]


def test_json_has_a_line_for_each_test(case: Case) -> None:
    passed = Outcome(case, (), 0.25)

    (good, bad) = json.loads(format_json([to_result(passed), to_result(failed_outcome(case))]))["tests"]

    assert good == {
        "name": "a late click is dropped",
        "file": "tests/shop.yml",
        "line": 7,
        "outcome": "passed",
        "seconds": 0.25,
        "message": None,
    }
    assert bad["outcome"] == "failed"
    assert "=>      3" in bad["message"]


def test_junit_holds_the_report_of_what_failed(case: Case) -> None:
    root = ElementTree.fromstring(
        format_junit([to_result(Outcome(case, (), 0.25)), to_result(failed_outcome(case))])
    )

    assert root.attrib == {"tests": "2", "failures": "1", "errors": "0", "time": "0.750"}
    good, bad = root.iter("testcase")
    assert list(good) == []
    assert (
        bad[0].attrib["message"] == "step 3: rows of query 'funnel', rows dropped as too late not as expected"
    )
    assert "wanted" in (bad[0].text or "")


def test_a_file_that_cannot_be_understood_has_a_result_for_each_error() -> None:
    text = TEXT.replace("crash:", "crush:").replace("- restart", "- restrt")
    suite = load_text("tests/shop.yml", text, Path("tests/shop.yml"), lambda _: {})

    results = list_load_errors(suite)

    assert [(result.line, result.outcome.value) for result in results] == [(11, "error"), (15, "error")]
    assert (results[0].message or "").startswith("error[MS002]: a step has no key 'crush'")
    assert (results[0].message or "").endswith("see:  millstream explain MS002")
