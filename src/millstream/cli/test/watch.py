"""`millstream test --watch`: run tests again whenever a file is saved, in one warm Spark session."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from millstream.cli.check.watch import clear_screen, wait_for_change
from millstream.cli.messages import format_failure
from millstream.cli.test.output import TestOutput, format_summary, load_tests, run_cases

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from millstream.checking.file_watch import Stamps
    from millstream.testing.runner.runner import Runner


def watch_tests(paths: Sequence[Path], words: str | None, env_file: Path | None, *, stop: bool) -> int:
    """Run tests, print results, and wait for the next change, until Ctrl-C. Always returns 0."""
    from millstream.checking.file_watch import PROJECT_SUFFIXES, read_stamps, unload_modules
    from millstream.testing.files.discovery import find_project_folder
    from millstream.testing.runner.runner import Runner

    screen = TestOutput()
    folders = [path if path.is_dir() else path.parent for path in paths] or [find_project_folder()]

    def scan() -> Stamps:
        return read_stamps(folders, [env_file] if env_file else [], suffixes=PROJECT_SUFFIXES)

    with Runner(screen.say) as runner:
        try:
            while True:
                # A file that is saved during a round starts another round.
                before = scan()
                watched = _round(runner, screen, paths, words, env_file, stop=stop)
                if watched and watched != folders:
                    folders[:] = watched
                    before = scan()
                wait_for_change(scan, before)
                unload_modules(folders)
        except KeyboardInterrupt:
            click.echo("", err=True)
            return 0


def _round(
    runner: Runner,
    screen: TestOutput,
    paths: Sequence[Path],
    words: str | None,
    env_file: Path | None,
    *,
    stop: bool,
) -> list[Path]:
    """Run all tests once, and return the folders of the tests and of their pipelines; none if no test was loaded."""
    from millstream.diagnostics.failure import MillstreamError

    start = time.monotonic()
    clear_screen()
    screen.file = ""
    folders: list[Path] = []
    try:
        suites, cases = load_tests(paths, words, env_file)
        folders = [suite.file.parent for suite in suites] + [
            file.parent for suite in suites for file in suite.files
        ]
        results = run_cases(runner, suites, cases, screen, stop=stop)
        screen.steps.clear()
        click.echo(format_summary(results, start))
    except MillstreamError as failure:
        # For example, a file that an editor is replacing: the next save may fix it.
        click.echo(format_failure(failure), err=True)
    click.echo(f"{time.strftime('%H:%M:%S')} waiting for changes; press Ctrl-C to stop", err=True)
    return list(dict.fromkeys(folders))
