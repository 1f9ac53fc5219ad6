"""`millstream check --watch`: check again whenever a file is saved, in one warm Spark session."""

from __future__ import annotations

import os
import sys
import time
from threading import Event
from typing import TYPE_CHECKING

import click

from millstream.cli.messages import format_failure

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from millstream.checking.batch_check import Checker, CheckReport
    from millstream.checking.file_watch import Stamps
    from millstream.checking.targets import CheckTarget

# Seconds between two scans of the files. A delay this short feels immediate, and there are few files to scan.
PAUSE = 0.2
# Files must be unchanged for this many seconds, because an editor may write a file twice or save several.
SETTLES = 0.05


def watch(
    checker: Checker,
    targets: Sequence[CheckTarget],
    more: Sequence[Path],
    show: Callable[[Sequence[CheckReport]], object],
) -> int:
    """Check, call `show`, and wait for the next change, until Ctrl-C. Always returns 0.

    `more` are files that a check reads outside the targets' folders.
    """
    from millstream.checking.file_watch import read_stamps, unload_modules

    folders = [target.folder for target in targets]
    files = [*(target.path for target in targets if target.path.is_file()), *more]

    def scan() -> Stamps:
        return read_stamps(folders, files)

    try:
        while True:
            stamps_before = scan()
            _round(checker, targets, show)
            stamps_before = wait_for_change(scan, stamps_before)
            unload_modules(folders)
    except KeyboardInterrupt:
        click.echo("", err=True)
        return 0


def _round(
    checker: Checker, targets: Sequence[CheckTarget], show: Callable[[Sequence[CheckReport]], object]
) -> None:
    """Check all targets once, and print the time it took."""
    from millstream.diagnostics.failure import MillstreamError

    start = time.monotonic()
    error = ""
    try:
        reports = [checker.recheck(target) for target in targets]
    except MillstreamError as failure:
        # For example, a file that an editor is replacing, or a missing Java: the next save may fix it.
        reports, error = [], format_failure(failure)
    checker.say("")
    clear_screen()
    if error:
        click.echo(error, err=True)
    elif reports:
        show(reports)
    now = time.strftime("%H:%M:%S")
    click.echo(
        f"{now} checked in {time.monotonic() - start:.2f} s; waiting for changes; press Ctrl-C to stop",
        err=True,
    )


def wait_for_change(scan: Callable[[], Stamps], before: Stamps) -> Stamps:
    """Wait until a file has changed and all files are stable again."""
    pause = Event()
    while (now := scan()) == before:
        pause.wait(PAUSE)
    while True:
        pause.wait(SETTLES)
        if (later := scan()) == now:
            return later
        now = later


def clear_screen() -> None:
    """Clear the screen on a terminal; print a line of dashes elsewhere."""
    if sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb":
        click.echo("\x1b[H\x1b[2J\x1b[3J", nl=False)
    else:
        click.echo("-" * 60)
