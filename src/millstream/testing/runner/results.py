"""Format test results for programs: JSON, and JUnit XML for build servers."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from millstream.diagnostics import junit
from millstream.diagnostics.finding import Severity
from millstream.diagnostics.render import render
from millstream.pipeline.load.loader import display_path
from millstream.testing.runner.failure_report import format_report, locate_test, summarize_failure

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from millstream.testing.files.loader import Suite
    from millstream.testing.model import Outcome


class CaseOutcome(StrEnum):
    """The outcome kinds of a test."""

    PASSED = "passed"
    FAILED = "failed"
    """An expectation is not met."""
    ERROR = "error"
    """The test could not run, or its file is invalid."""


@dataclass(frozen=True)
class Result:
    """The result of one test, or of one finding in an invalid file.

    `seconds` is wall-clock time. `message` is the whole report, or None for a passed test.
    """

    name: str
    file: str
    line: int
    outcome: CaseOutcome
    seconds: float
    message: str | None = None
    short: str = ""


def to_result(outcome: Outcome) -> Result:
    """Return the result of a test run."""
    file, line = locate_test(outcome)
    name, seconds = outcome.case.name, round(outcome.seconds, 3)
    if outcome.has_passed:
        return Result(name, file, line, CaseOutcome.PASSED, seconds)
    ending = CaseOutcome.FAILED if outcome.fault is None else CaseOutcome.ERROR
    return Result(name, file, line, ending, seconds, format_report(outcome), summarize_failure(outcome))


def list_load_errors(suite: Suite) -> list[Result]:
    """Return a result for each error in an invalid file."""
    own_name = str(display_path(suite.file))
    results = []
    for problem in suite.findings:
        if problem.severity is Severity.ERROR:
            file, line = (problem.span.file, problem.span.line) if problem.span else (own_name, 1)
            text = render([problem], suite.texts).rsplit("\n\n", 1)[0].rstrip("\n")
            results.append(
                Result(
                    f"{problem.code} {problem.name}",
                    file,
                    line,
                    CaseOutcome.ERROR,
                    0.0,
                    text,
                    problem.message,
                )
            )
    return results


def format_json(results: Iterable[Result]) -> str:
    """`{"tests": [{"name", "file", "line", "outcome", "seconds", "message"}]}`, one test per line."""
    lines = []
    for test in results:
        data = asdict(test)
        del data["short"]
        lines.append(f"  {json.dumps(data, ensure_ascii=False)}")
    inside = ",\n".join(lines)
    return f'{{"tests": [\n{inside}\n]}}\n' if lines else '{"tests": []}\n'


def format_junit(results: Sequence[Result]) -> str:
    """Write one suite per file and one test case per test. A failed test has its report as text."""
    suites = []
    for file in dict.fromkeys(test.file for test in results):
        of_file = [test for test in results if test.file == file]
        suites.append(junit.JunitSuite(file, [_format_case(test) for test in of_file], _counts(of_file)))
    return junit.format_suites(suites, _counts(results))


def _counts(results: Sequence[Result]) -> dict[str, object]:
    return {
        "tests": len(results),
        "failures": sum(test.outcome is CaseOutcome.FAILED for test in results),
        "errors": sum(test.outcome is CaseOutcome.ERROR for test in results),
        "time": f"{sum(test.seconds for test in results):.3f}",
    }


def _format_case(test: Result) -> str:
    attributes = {
        "classname": test.file,
        "name": test.name,
        "file": test.file,
        "line": test.line,
        "time": f"{test.seconds:.3f}",
    }
    if test.message is None:
        return junit.format_case(attributes)
    word = "failure" if test.outcome is CaseOutcome.FAILED else "error"
    return junit.format_case(attributes, word, test.message, message=test.short)
