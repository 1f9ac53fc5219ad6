"""What `millstream test` prints: a line a test, the report of each that failed, and how many there were."""

from __future__ import annotations

import sys
import time
from collections import Counter
from typing import TYPE_CHECKING

import click

from millstream.cli.environment import environment
from millstream.cli.project import colored, print_findings
from millstream.cli.steps import Steps
from millstream.diagnostics.failure import WrongUse
from millstream.diagnostics.text import Paint

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from millstream.testing.case import Case, Outcome
    from millstream.testing.load import Suite
    from millstream.testing.results import Result
    from millstream.testing.run import Runner

_TONES = {"passed": "32", "failed": "31", "error": "31"}
_WORDS = {"passed": "ok", "failed": "FAILED", "error": "ERROR"}


def surroundings(env_file: Path | None) -> Callable[[Path], Mapping[str, str]]:
    """The variables that a spec in a folder sees."""
    return lambda folder: environment(folder, env_file)


def gather(
    paths: Sequence[Path], words: str | None, env_file: Path | None, *, filling: bool = False
) -> tuple[list[Suite], list[Case]]:
    """The test files that are meant, and the tests in them; findings are printed to stderr.

    Raises `WrongUse` when there is no test at all.
    """
    from millstream.testing.find import chosen, find
    from millstream.testing.load import load

    suites = [load(file, surroundings(env_file), filling=filling) for file in find(paths)]
    # A pipeline that several test files share has its findings told once.
    findings = list(dict.fromkeys(found for suite in suites for found in suite.findings))
    if findings:
        print_findings(findings, {name: text for suite in suites for name, text in suite.texts.items()})
    cases = chosen([case for suite in suites for case in suite.cases], words)
    if words and not cases and not findings:
        raise WrongUse(f"no test has all of '{words}' in its file or name", "leave -k out to see the names")
    return suites, cases


class Screen:
    """Tells on stdout what became of each test, and on stderr what is being done."""

    def __init__(self, *, quiet: bool = False) -> None:
        self.steps, self.quiet = Steps(), quiet
        self.color = colored(sys.stdout)
        self.paint = Paint(color=self.color)
        self.file = ""

    def say(self, text: str) -> None:
        """Something that takes a while has begun; only a terminal is told of each test."""
        if self.steps.live or not text[:1].isdigit():
            self.steps.tell(text)

    def told(self, result: Result, outcome: Outcome) -> None:
        """One test has ended."""
        from millstream.testing.report import report

        self.steps.done()
        if self.quiet:
            return
        if result.file != self.file:
            click.echo(f"{self.paint(result.file, '1')}")
            self.file = result.file
        word = self.paint(_WORDS[result.outcome].ljust(6), _TONES[result.outcome])
        click.echo(f"  {word}  {result.name}  {self.paint(f'{result.seconds:.1f} s', '34')}")
        if not outcome.passed:
            lines = report(outcome, color=self.color).splitlines()[1:]
            click.echo("\n".join(["", *lines, ""]))


def play(
    runner: Runner, suites: Sequence[Suite], cases: list[Case], screen: Screen, *, stop: bool
) -> list[Result]:
    """Play tests and tell of each; a file that cannot be understood gives a result for each of its errors."""
    from millstream.testing.results import unread

    wrong = [result for suite in suites if suite.failed for result in unread(suite)]
    if wrong and stop:
        return wrong
    return [*wrong, *runner.all(cases, stop=stop, tell=screen.told)]


def summary(results: Sequence[Result], began: float) -> str:
    """How many tests ended how, and how long it took."""
    counts = Counter(result.outcome.value for result in results)
    words = {"passed": "passed", "failed": "failed", "error": "error" if counts["error"] == 1 else "errors"}
    told = ", ".join(f"{counts[key]} {word}" for key, word in words.items() if counts[key]) or "no tests"
    return f"{told} in {time.monotonic() - began:.1f} s"


def status(suites: Sequence[Suite], results: Sequence[Result]) -> int:
    """The exit code: 2 when a file cannot be read, 1 when a test failed or a file has errors."""
    if any(found.code == "MS001" for suite in suites for found in suite.findings):
        return 2
    return 1 if any(result.outcome != "passed" for result in results) else 0


def following(suites: Sequence[Suite], results: Sequence[Result]) -> str:
    """The next command."""
    failed = next((result for result in results if result.outcome == "failed"), None)
    if failed is not None:
        return f"next: millstream test {failed.file} -k '{_plain(failed.name)}', or --update where what came is right"
    if any(suite.failed for suite in suites):
        return "next: mend what was found, then millstream test"
    if any(result.outcome != "passed" for result in results):
        return "next: millstream check"
    return "next: millstream run"


def _plain(name: str) -> str:
    """A name that may stand between single quotes."""
    return name.replace("'", " ")
