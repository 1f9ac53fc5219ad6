"""`millstream dev`: after each save, check the spec, show rows of the changed view and run the affected tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from millstream.cli.project import project_options

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


@click.command("dev", short_help="Check, test and show rows whenever a file is saved.")
@project_options
@click.option(
    "--view", metavar="NAME", help="Show this view or source. [default: the view that changed last]"
)
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(0, 1000),
    default=10,
    show_default=True,
    help="Maximum number of rows to print.",
)
@click.option("--live", is_flag=True, help="Read the newest records of every source instead of samples.")
@click.option(
    "-k", "words", metavar="WORDS", help="Run only the tests whose file or name contains all these words."
)
def command(
    file: Path | None,
    overrides: Sequence[str],
    env_file: Path | None,
    *,
    view: str | None,
    limit: int,
    live: bool,
    words: str | None,
) -> int:
    """Watch the files of a pipeline, and show what changes whenever you save one.

    After each save, `dev` checks the spec, prints the newest rows of the view that changed, and runs the
    tests that depend on the change. Spark stays running, so all of this takes about a second after you
    save a file. Nothing is written to a sink. Press Ctrl-C to stop.

    The rows are computed in one batch from a sample of each source. The sample is the first of these that
    exists: generated rows of a rate source, the lines of samples/SOURCE.jsonl, the newest records of files
    and tables, the input rows of a test. With --live, `dev` reads the newest records of every source instead,
    also from brokers.
    """
    from millstream.cli.dev.loop import DevLoop
    from millstream.cli.project import find_spec

    return DevLoop(find_spec(file), overrides, env_file, view, limit, words, live=live).run()
