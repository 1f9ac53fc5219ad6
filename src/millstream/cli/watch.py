"""`millstream check --watch`: check again whenever a file is saved, with Spark kept warm."""

from __future__ import annotations

import os
import sys
import time
from threading import Event
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from millstream.runtime.checker import Checker, Report
    from millstream.runtime.targets import Target
    from millstream.runtime.watching import Stamps

# Seconds between two looks: a fifth of what a person takes for at once, and a few files to look at.
PAUSE = 0.2
# An editor that writes a file twice, or saves several, is let finish within this many seconds.
SETTLES = 0.05


def watch(
    checker: Checker,
    targets: Sequence[Target],
    more: Sequence[Path],
    show: Callable[[Sequence[Report]], object],
) -> int:
    """Check, `show`, and wait for the next change, until Ctrl-C; gives 0.

    `more` are files outside of the targets' folders that a check reads.
    """
    from millstream.runtime.watching import forget, stamps

    folders = [target.folder for target in targets]

    def look() -> Stamps:
        return stamps(folders, more)

    try:
        while True:
            seen = look()
            _round(checker, targets, show)
            seen = changed(look, seen)
            forget(folders)
    except KeyboardInterrupt:
        click.echo("", err=True)
        return 0


def _round(checker: Checker, targets: Sequence[Target], show: Callable[[Sequence[Report]], object]) -> None:
    """One check of everything, with the time it took."""
    from millstream.diagnostics.failure import MillstreamError

    began = time.monotonic()
    said = ""
    try:
        reports = [checker.again(target) for target in targets]
    except MillstreamError as failed:
        # A file that is away while an editor replaces it, Java that is missing: the next save may cure it.
        reports, said = [], f"millstream: {failed.what}\n  fix: {failed.fix}"
    checker.say("")
    clear()
    if said:
        click.echo(said, err=True)
    elif reports:
        show(reports)
    at = time.strftime("%H:%M:%S")
    click.echo(
        f"{at} checked in {time.monotonic() - began:.2f} s; waiting for a change, Ctrl-C ends", err=True
    )


def changed(look: Callable[[], Stamps], seen: Stamps) -> Stamps:
    """Wait until a file is another than it was, and until it stays so."""
    pause = Event()
    while (now := look()) == seen:
        pause.wait(PAUSE)
    while True:
        pause.wait(SETTLES)
        if (later := look()) == now:
            return later
        now = later


def clear() -> None:
    """A fresh screen on a terminal, a line of dashes elsewhere."""
    if sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb":
        click.echo("\x1b[H\x1b[2J\x1b[3J", nl=False)
    else:
        click.echo("-" * 60)
