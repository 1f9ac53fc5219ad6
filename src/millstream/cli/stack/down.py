"""`millstream down`: stop the local stack, or one of its servers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from millstream.cli.messages import print_hint
from millstream.cli.project import find_spec, project_options
from millstream.devstack import stack

if TYPE_CHECKING:
    from pathlib import Path


@click.command(name="down")
@click.argument("servers", nargs=-1, type=click.Choice(stack.ALL_SERVERS), metavar="[SERVER]...")
@project_options
def command(
    servers: tuple[str, ...],
    file: Path | None,
    overrides: tuple[str, ...],  # noqa: ARG001 - every command about a project takes it
    env_file: Path | None,  # noqa: ARG001 - every command about a project takes it
) -> None:
    """Stop the local servers of a project and keep their data.

    If a SERVER is named, such as kafka, postgres, spark-master or spark-worker-1, stop only that server;
    'millstream ps' lists the servers, and 'millstream up kafka' starts one again at the same address.
    """
    folder = find_spec(file).parent
    for server in servers:
        stopped = stack.stop(folder, server)
        click.echo(f"{server} stopped" if stopped else f"{server} was not running", err=True)
    if servers:
        print_hint(f"next: millstream up {' '.join(servers)}")
        return
    stopped = stack.down(folder)
    click.echo(
        "the servers have stopped; their data is kept" if stopped else "no stack was running", err=True
    )
    print_hint("next: millstream up")
