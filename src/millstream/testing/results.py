"""What became of tests, for programs: JSON, and JUnit XML as build servers read it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from enum import StrEnum
from html import escape  # xml.sax would load an HTTP client
from typing import TYPE_CHECKING

from millstream.diagnostics.finding import Severity
from millstream.diagnostics.junit import attribute, plain
from millstream.diagnostics.render import render
from millstream.pipeline.loaded import shown
from millstream.testing.report import headline, place, report

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from millstream.testing.case import Outcome
    from millstream.testing.load import Suite


class Ending(StrEnum):
    """How a test ended."""

    PASSED = "passed"
    FAILED = "failed"
    """Something is not as expected."""
    ERROR = "error"
    """It could not be played, or its file cannot be understood."""


@dataclass(frozen=True)
class Result:
    """One test; for a file that cannot be understood, one for each finding.

    `seconds` is wall-clock time. `message` is the whole report, None for a test that passed.
    """

    name: str
    file: str
    line: int
    outcome: Ending
    seconds: float
    message: str | None = None
    short: str = ""


def result(outcome: Outcome) -> Result:
    """The result of a test that was played."""
    file, line = place(outcome)
    name, seconds = outcome.case.name, round(outcome.seconds, 3)
    if outcome.passed:
        return Result(name, file, line, Ending.PASSED, seconds)
    ending = Ending.FAILED if outcome.fault is None else Ending.ERROR
    return Result(name, file, line, ending, seconds, report(outcome), headline(outcome))


def unread(suite: Suite) -> list[Result]:
    """A result for each error of a file that cannot be understood."""
    own = str(shown(suite.file))
    found = []
    for one in suite.findings:
        if one.severity is Severity.ERROR:
            file, line = (one.span.file, one.span.line) if one.span else (own, 1)
            told = render([one], suite.texts).rsplit("\n\n", 1)[0].rstrip("\n")
            found.append(Result(f"{one.code} {one.name}", file, line, Ending.ERROR, 0.0, told, one.message))
    return found


def as_json(results: Iterable[Result]) -> str:
    """`{"tests": [{"name", "file", "line", "outcome", "seconds", "message"}]}`, one test a line."""
    lines = []
    for one in results:
        data = asdict(one)
        del data["short"]
        lines.append(f"  {json.dumps(data, ensure_ascii=False)}")
    inside = ",\n".join(lines)
    return f'{{"tests": [\n{inside}\n]}}\n' if lines else '{"tests": []}\n'


def junit(results: Sequence[Result]) -> str:
    """One suite a file, one test case a test; what failed has its report as text."""
    files = list(dict.fromkeys(one.file for one in results))
    counts = _counts(results)
    lines = ['<?xml version="1.0" encoding="utf-8"?>', f"<testsuites {counts}>"]
    for file in files:
        own = [one for one in results if one.file == file]
        lines.append(f"  <testsuite name={attribute(file)} {_counts(own)}>")
        lines += [_case(one) for one in own]
        lines.append("  </testsuite>")
    return "\n".join([*lines, "</testsuites>\n"])


def _counts(results: Sequence[Result]) -> str:
    failures = sum(one.outcome is Ending.FAILED for one in results)
    errors = sum(one.outcome is Ending.ERROR for one in results)
    seconds = sum(one.seconds for one in results)
    return f'tests="{len(results)}" failures="{failures}" errors="{errors}" time="{seconds:.3f}"'


def _case(one: Result) -> str:
    head = (
        f"    <testcase classname={attribute(one.file)} name={attribute(one.name)} file={attribute(one.file)} "
        f'line="{one.line}" time="{one.seconds:.3f}"'
    )
    if one.message is None:
        return f"{head}/>"
    word = "failure" if one.outcome is Ending.FAILED else "error"
    text = escape("\n".join(plain(line) for line in one.message.splitlines()), quote=False)
    return f"{head}>\n      <{word} message={attribute(one.short)}>{text}</{word}>\n    </testcase>"
