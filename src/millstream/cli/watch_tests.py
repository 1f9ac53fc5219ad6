"""`millstream test --watch`: play again whenever a file is saved, with Spark kept warm."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from millstream.cli.playing import Screen, gather, play, summary
from millstream.cli.watch import changed, clear

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from millstream.runtime.watching import Stamps
    from millstream.testing.run import Runner


def watch_tests(paths: Sequence[Path], words: str | None, env_file: Path | None, *, stop: bool) -> int:
    """Play, tell, and wait for the next change, until Ctrl-C; gives 0."""
    from millstream.runtime.watching import forget, stamps
    from millstream.testing.run import Runner

    screen = Screen()
    folders: list[Path] = []

    def look() -> Stamps:
        return stamps(folders, [env_file] if env_file else [])

    with Runner(screen.say) as runner:
        try:
            while True:
                # What is saved while tests are played is played again.
                seen = look() if folders else None
                found = _round(runner, screen, paths, words, env_file, stop=stop)
                if seen is None or found != folders:
                    folders[:] = found
                    seen = look()
                changed(look, seen)
                forget(folders)
        except KeyboardInterrupt:
            click.echo("", err=True)
            return 0


def _round(
    runner: Runner,
    screen: Screen,
    paths: Sequence[Path],
    words: str | None,
    env_file: Path | None,
    *,
    stop: bool,
) -> list[Path]:
    """Play everything once; gives the folders of the tests and of their pipelines."""
    from millstream.diagnostics.failure import MillstreamError

    began = time.monotonic()
    clear()
    screen.file = ""
    folders: list[Path] = [path if path.is_dir() else path.parent for path in paths]
    try:
        suites, cases = gather(paths, words, env_file)
        folders = [suite.file.parent for suite in suites] + [
            file.parent for suite in suites for file in suite.files
        ]
        results = play(runner, suites, cases, screen, stop=stop)
        screen.steps.done()
        click.echo(summary(results, began))
    except MillstreamError as failed:
        # A file that is away while an editor replaces it: the next save may cure it.
        click.echo(f"millstream: {failed.what}\n  fix: {failed.fix}", err=True)
    click.echo(f"{time.strftime('%H:%M:%S')} waiting for a change, Ctrl-C ends", err=True)
    return list(dict.fromkeys(folders))
