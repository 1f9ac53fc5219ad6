"""`millstream logs`: print the log of a local server."""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING

import click

from millstream.cli.project import find_spec, project_options
from millstream.devstack import stack
from millstream.diagnostics.failure import NotReady

if TYPE_CHECKING:
    from pathlib import Path

_LOOK = 0.2


@click.command(name="logs")
@click.argument("server", type=click.Choice(stack.ALL_SERVERS), metavar="SERVER")
@project_options
@click.option(
    "-n", "--lines", type=click.IntRange(0), default=50, show_default=True, help="Number of lines to print."
)
@click.option("-F", "--follow", is_flag=True, help="Keep printing new lines, until Ctrl-C.")
def command(
    server: str,
    file: Path | None,
    overrides: tuple[str, ...],  # noqa: ARG001 - every command about a project takes it
    env_file: Path | None,  # noqa: ARG001 - every command about a project takes it
    lines: int,
    follow: bool,
) -> None:
    """Print the last lines of a local server's log."""
    log = stack.log_file(find_spec(file).parent, server)
    if not log.is_file():
        raise NotReady(
            f"{server} has no log because it was never started here", "start it with 'millstream up'"
        )
    with log.open(errors="replace") as stream:
        for line in deque(stream, maxlen=lines):
            click.echo(line, nl=False)
        while follow:
            try:
                added = stream.read()
                click.echo(added, nl=False)
                if not added:
                    # There is no notification when a file grows.
                    time.sleep(_LOOK)
            except KeyboardInterrupt:
                return
