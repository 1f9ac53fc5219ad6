"""Print the output of `millstream test`: a line per test, the report of each failure, and a summary."""

from __future__ import annotations

import shlex
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING

import click

from millstream.cli.progress import ProgressReporter
from millstream.cli.project import print_findings, use_colors
from millstream.cli.variables import spec_environment
from millstream.diagnostics.failure import InvalidInput
from millstream.diagnostics.text import Colours

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from millstream.testing.files.loader import Suite
    from millstream.testing.model import Case, Outcome
    from millstream.testing.runner.results import Result
    from millstream.testing.runner.runner import Runner

_TONES = {"passed": "32", "failed": "31", "error": "31"}
_WORDS = {"passed": "ok", "failed": "FAILED", "error": "ERROR"}


def environment_reader(env_file: Path | None) -> Callable[[Path], Mapping[str, str]]:
    """Return a function that gives the variables of a spec in a folder."""
    return lambda folder: spec_environment(folder, env_file)


def load_tests(
    paths: Sequence[Path], words: str | None, env_file: Path | None, *, filling: bool = False
) -> tuple[list[Suite], list[Case]]:
    """Load the test files and select their tests; print findings to stderr.

    Raises `InvalidInput` if there are no tests.
    """
    from millstream.testing.files.discovery import find_test_files, select_cases
    from millstream.testing.files.loader import load

    suites = [load(file, environment_reader(env_file), filling=filling) for file in find_test_files(paths)]
    # Findings of a pipeline that several test files share are printed once.
    findings = list(dict.fromkeys(finding for suite in suites for finding in suite.findings))
    if findings:
        print_findings(findings, {name: text for suite in suites for name, text in suite.texts.items()})
    cases = select_cases([case for suite in suites for case in suite.cases], words)
    if words and not cases and not findings:
        raise InvalidInput(
            f"no test has all the words '{words}' in its file or name", "leave out -k to see the names"
        )
    return suites, cases


class TestOutput:
    """Prints the result of each test to stdout, and progress to stderr."""

    def __init__(self, *, quiet: bool = False) -> None:
        self.steps, self.quiet = ProgressReporter(), quiet
        self.color = use_colors(sys.stdout)
        self.paint = Colours(color=self.color)
        self.file = ""

    def say(self, text: str) -> None:
        """Show a progress message; messages for each single test appear only on a terminal."""
        if self.steps.live or not text[:1].isdigit():
            self.steps.show(text)

    def print_result(self, result: Result, outcome: Outcome) -> None:
        """Print the result of one test."""
        from millstream.testing.runner.failure_report import format_report

        self.steps.clear()
        if self.quiet:
            return
        if result.file != self.file:
            click.echo(f"{self.paint(result.file, '1')}")
            self.file = result.file
        word = self.paint(_WORDS[result.outcome].ljust(6), _TONES[result.outcome])
        click.echo(f"  {word}  {result.name}  {self.paint(f'{result.seconds:.1f} s', '34')}")
        if not outcome.has_passed:
            lines = format_report(outcome, color=self.color).splitlines()[1:]
            click.echo("\n".join(["", *lines, ""]))


def run_cases(
    runner: Runner, suites: Sequence[Suite], cases: list[Case], screen: TestOutput, *, stop: bool
) -> list[Result]:
    """Run tests and print each result. Each error of an invalid file counts as a result."""
    from millstream.testing.runner.results import list_load_errors

    file_errors = [result for suite in suites if suite.has_errors for result in list_load_errors(suite)]
    if file_errors and stop:
        return file_errors
    return [*file_errors, *runner.all(cases, stop=stop, report=screen.print_result)]


def format_summary(results: Sequence[Result], start: float) -> str:
    """Return the number of tests per outcome, and the time they took."""
    counts = Counter(result.outcome.value for result in results)
    words = {"passed": "passed", "failed": "failed", "error": "error" if counts["error"] == 1 else "errors"}
    outcomes = ", ".join(f"{counts[key]} {word}" for key, word in words.items() if counts[key]) or "no tests"
    return f"{outcomes} in {time.monotonic() - start:.1f} s"


def exit_code(suites: Sequence[Suite], results: Sequence[Result]) -> int:
    """Return the exit code: 2 if a file cannot be read, 1 if a test failed or a file has errors."""
    if any(finding.code == "MS001" for suite in suites for finding in suite.findings):
        return 2
    return 1 if any(result.outcome != "passed" for result in results) else 0


def next_command(suites: Sequence[Suite], results: Sequence[Result]) -> str:
    """Return the next command to run."""
    failed_result = next((result for result in results if result.outcome == "failed"), None)
    if failed_result is not None:
        return (
            f"next: millstream test {select_test(failed_result.file, failed_result.name)}, "
            "or add --update if the actual results are right"
        )
    if any(suite.has_errors for suite in suites):
        return "next: fix the findings, then millstream test"
    if any(result.outcome != "passed" for result in results):
        return "next: millstream check"
    return "next: millstream run"


def select_test(file: str, name: str) -> str:
    """Return the arguments of `millstream test` that select one test, quoted for a shell."""
    return f"{shlex.quote(file)} -k {shlex.quote(name)}"
