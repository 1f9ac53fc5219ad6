"""Print a round of `millstream dev`: the check, the rows of a view, the tests, and the time they took."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import click

from millstream.cli.check.check import format_counts
from millstream.cli.check.watch import clear_screen
from millstream.cli.messages import format_failure
from millstream.cli.progress import ProgressReporter
from millstream.cli.project import use_colors
from millstream.cli.table import format_table, terminal_width
from millstream.diagnostics.text import Colours

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from millstream.checking.batch_check import CheckReport
    from millstream.diagnostics.failure import MillstreamError
    from millstream.testing.files.loader import Suite
    from millstream.testing.model import Outcome
    from millstream.testing.samples import Preview

_BOLD, _BLUE, _GREEN, _RED = "1", "34", "32", "31"


class DevOutput:
    """Prints rounds to stdout, a fresh screen for each on a terminal, and progress to stderr."""

    def __init__(self) -> None:
        self.steps = ProgressReporter()
        self.color = use_colors(sys.stdout)
        self.paint = Colours(color=self.color)

    def begin(self, spec: Path, saved: Sequence[Path]) -> None:
        """Clear the screen, and print which files were saved."""
        clear_screen()
        names = ", ".join(file.name for file in saved[:3]) + (" and more" if len(saved) > 3 else "")
        what = f"{names} saved" if saved else f"watching {spec.resolve().parent.name}"
        click.echo(self.paint(f"{time.strftime('%H:%M:%S')}  {what}", _BLUE))

    def print_check(self, report: CheckReport, seconds: float) -> None:
        """Print the findings, or that there are none."""
        from millstream.diagnostics.render import render
        from millstream.diagnostics.text import count_by_severity
        from millstream.spec.secrets.redaction import redact_values

        findings = report.checked.findings
        pipeline = report.loaded.pipeline if report.loaded else None
        words = count_by_severity(findings) if findings else "no findings"
        subject = format_counts(pipeline) if pipeline else report.target.name
        self._head("check", f"{subject}, {words}", seconds, is_bad=report.checked.has_errors)
        if findings:
            text = render(findings, report.checked.texts, "text", self.color, [])
            click.echo(f"\n{redact_values(text)}".rstrip())
        if report.checked.has_errors:
            click.echo("\nRows and tests follow when the check finds no errors.")

    def print_rows(self, name: str, preview: Preview, limit: int, seconds: float) -> None:
        """Print the rows of a view, and where its records are from."""
        many = len(preview.rows)
        words = f"the newest {many} rows" if many == limit else f"{many} row{'s' * (many != 1)}"
        self._head("rows", f"{name}, {words}", seconds)
        for source, sample in preview.samples.items():
            if sample.records == ():
                click.echo(
                    f"  {source}: no sample. Put records into samples/{source}.jsonl, one per line, or use --live."
                )
            else:
                click.echo(self.paint(f"  {source}: {sample.origin}", _BLUE))
        if preview.rows:
            click.echo(f"\n{format_table(preview.columns, preview.rows, width=terminal_width())}", nl=False)

    def print_no_rows(self, name: str, reason: Exception | str) -> None:
        """Print in one sentence why there are no rows."""
        from millstream.checking.compat.error_parser import split_message
        from millstream.spec.secrets.redaction import redact

        sentence = reason if isinstance(reason, str) else split_message(reason)[0]
        self._head("rows", f"{name} cannot be computed: {redact(sentence)}", None, is_bad=True)

    def print_tests(
        self,
        suites: Sequence[Suite],
        outcomes: Collection[Outcome],
        affected: int,
        total: int,
        seconds: float,
    ) -> None:
        """Print how many tests pass, and the report of each that fails."""
        from millstream.cli.project import print_findings
        from millstream.testing.runner.failure_report import format_report, locate_test

        findings = list(dict.fromkeys(finding for suite in suites for finding in suite.findings))
        failed = [outcome for outcome in outcomes if not outcome.has_passed]
        waiting = total - len(outcomes)
        words = [f"{len(outcomes) - len(failed)} passed", f"{len(failed)} failed" if failed else ""]
        words += [f"{waiting} not run, because a file was saved" if waiting else ""]
        if total:
            text = f"{', '.join(filter(None, words))} ({affected} of {total} affected)"
            self._head("tests", text, seconds, is_bad=bool(failed))
        elif not findings:
            self._head("tests", "none in the folder 'tests'", None)
        # One whole report fits on a screen; the next test is for the next save.
        for outcome in failed[:1]:
            click.echo(f"\n{format_report(outcome, color=self.color)}")
        if failed[1:]:
            click.echo("\nalso failed:")
        for outcome in failed[1:]:
            file, line = locate_test(outcome)
            click.echo(f"  {file}:{line}  {outcome.case.name}")
        if findings:
            self._head("tests", "a test file has findings", None, is_bad=True)
            print_findings(findings, {name: text for suite in suites for name, text in suite.texts.items()})

    def print_failure(self, failure: MillstreamError) -> None:
        """Print a failure that the next save may fix."""
        self.steps.clear()
        click.echo(format_failure(failure))

    def end(self, seconds: float) -> None:
        """Print the time that the round took."""
        self.steps.clear()
        click.echo(f"\n{seconds:.1f} s; waiting for changes; press Ctrl-C to stop")

    def _head(self, word: str, text: str, seconds: float | None, *, is_bad: bool = False) -> None:
        """Print the first line of a step: `check  shop: 2 sources, no findings  0.3 s`."""
        self.steps.clear()
        took = "" if seconds is None else self.paint(f"  {seconds:.1f} s", _BLUE)
        click.echo(f"\n{self.paint(word.ljust(5), _BOLD, _RED if is_bad else _GREEN)}  {text}{took}")
