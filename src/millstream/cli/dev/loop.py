"""The loop of `millstream dev`: what is kept between two saves, and the steps after each."""

from __future__ import annotations

import io
import time
from contextlib import redirect_stderr
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

import click

from millstream.checking.batch_check import Checker
from millstream.checking.file_watch import PROJECT_SUFFIXES, read_stamps, unload_modules
from millstream.checking.targets import CheckTarget, TargetKind
from millstream.cli.check.watch import wait_for_change
from millstream.cli.dev.changes import describe_case, describe_entries, describe_python, find_changed_view
from millstream.cli.dev.output import DevOutput
from millstream.cli.project import load_project
from millstream.cli.test.output import environment_reader
from millstream.diagnostics.failure import MillstreamError
from millstream.testing.files.discovery import find_test_files, select_cases
from millstream.testing.files.loader import load
from millstream.testing.runner.runner import Runner
from millstream.testing.samples import FOLDER, preview_view

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from millstream.checking.file_watch import Stamps
    from millstream.pipeline.model import Pipeline
    from millstream.testing.files.loader import Suite
    from millstream.testing.model import Case, Outcome


class DevLoop:
    """Checks, shows and tests a project after each save, in one Spark session."""

    def __init__(
        self,
        spec: Path,
        overrides: Sequence[str],
        env_file: Path | None,
        view: str | None,
        limit: int,
        words: str | None,
        *,
        live: bool,
    ) -> None:
        self.spec, self.env_file = spec, env_file
        self.view, self.limit, self.words, self.live = view, limit, words, live
        self.output = DevOutput()
        self.runner = Runner(self.output.steps.show)
        self.checker = Checker(
            load=partial(load_project, overrides=overrides, env_file=env_file),
            say=self.output.steps.show,
            start=self.runner.start,
        )
        # Generated rows are the same after each save, so that only the change shows.
        self.started = datetime.now(UTC)
        self.stamps: Stamps = {}
        self._shown: str | None = None
        self._entries: dict[str, str] = {}
        self._outcomes: dict[str, Outcome] = {}

    def run(self) -> int:
        """Work until Ctrl-C. Always returns 0."""
        with self.runner, self.checker:
            try:
                while True:
                    before, self.stamps = self.stamps, self._scan()
                    self._round(
                        [file for file in self.stamps if before.get(file) != self.stamps[file]]
                        if before
                        else []
                    )
                    wait_for_change(self._scan, self.stamps)
                    unload_modules([self.spec.parent])
            except KeyboardInterrupt:
                self.output.steps.clear()
                click.echo("", err=True)
                return 0

    def _scan(self) -> Stamps:
        more = [self.env_file] if self.env_file else []
        samples = sorted((self.spec.parent / FOLDER).glob("*.jsonl"))
        return read_stamps([self.spec.parent], [*more, *samples], suffixes=PROJECT_SUFFIXES)

    def _round(self, saved: Sequence[Path]) -> None:
        """Do all steps once. A save in the meantime ends the round before its next test."""
        start = time.monotonic()
        self.output.begin(self.spec, saved)
        try:
            pipeline = self._check()
            if pipeline is not None:
                suites = self._load_suites()
                cases = select_cases([case for suite in suites for case in suite.cases], self.words)
                self._show_rows(pipeline, cases)
                self._run_tests(suites, cases)
        except MillstreamError as failure:
            # For example, a file that an editor is replacing, or a missing Java: the next save may fix it.
            self.output.print_failure(failure)
        self.output.end(time.monotonic() - start)

    def _check(self) -> Pipeline | None:
        """Check the spec and print its findings. Return the pipeline if it has no errors."""
        start = time.monotonic()
        report = self.checker.recheck(CheckTarget(TargetKind.SPEC, self.spec))
        self.output.print_check(report, time.monotonic() - start)
        return report.loaded.pipeline if report.loaded and not report.checked.has_errors else None

    def _load_suites(self) -> list[Suite]:
        """Load the test files of the project; none if it has no test."""
        folder = self.spec.parent / "tests"
        try:
            files = find_test_files([folder]) if folder.is_dir() else []
        except MillstreamError:
            # There is a folder for tests, and no test in it yet.
            return []
        return [load(file, environment_reader(self.env_file)) for file in files]

    def _show_rows(self, pipeline: Pipeline, cases: Sequence[Case]) -> None:
        """Print the newest rows of the view that changed."""
        entries = describe_entries(pipeline, describe_python(self.stamps))
        self._shown = self.view or find_changed_view(pipeline, self._entries, entries, self._shown)
        self._entries = entries
        if self.limit == 0 or self._shown is None:
            return
        if self._shown not in entries:
            self.output.print_no_rows(self._shown, f"there is no view or source '{self._shown}'")
            return
        start = time.monotonic()
        self.output.steps.show(f"computing {self._shown}")
        spark = self.runner.start(pipeline.spark)
        try:
            preview = preview_view(
                spark, pipeline, self._shown, cases, self.limit, self.started, live=self.live
            )
        except Exception as error:  # noqa: BLE001 - a function of the user may raise anything; the next save may fix it
            self.output.print_no_rows(self._shown, error)
            return
        self.output.print_rows(self._shown, preview, self.limit, time.monotonic() - start)

    def _run_tests(self, suites: Sequence[Suite], cases: Sequence[Case]) -> None:
        """Run the tests whose result the save may have changed, and print all results that are known."""
        start = time.monotonic()
        keys = {describe_case(case, describe_python(self.stamps)): case for case in cases}
        failed_before = {outcome.case.name for outcome in self._outcomes.values() if not outcome.has_passed}
        self._outcomes = {key: outcome for key, outcome in self._outcomes.items() if key in keys}
        affected = [key for key in keys if key not in self._outcomes]
        # The test that failed before is the one that somebody works on.
        affected.sort(key=lambda key: keys[key].name not in failed_before)
        for number, key in enumerate(affected, 1):
            if self._scan() != self.stamps:
                break
            self.output.steps.show(f"testing: {number} of {len(affected)}, {keys[key].name}")
            # A console sink prints the rows of each batch, which would push the result off the screen.
            with redirect_stderr(io.StringIO()):
                self._outcomes[key] = self.runner.play(keys[key])
        self.output.print_tests(
            suites, self._outcomes.values(), len(affected), len(keys), time.monotonic() - start
        )
