"""`millstream ps`: show the servers of the local stack."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from millstream.cli.messages import print_hint
from millstream.cli.project import find_spec, project_options
from millstream.devstack import stack

if TYPE_CHECKING:
    from pathlib import Path


@click.command(name="ps")
@project_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(
    file: Path | None,
    overrides: tuple[str, ...],  # noqa: ARG001 - every command about a project takes it
    env_file: Path | None,  # noqa: ARG001 - every command about a project takes it
    as_json: bool,
) -> None:
    """Show the state, address and process of each local server of a project."""
    status = stack.status(find_spec(file).parent)
    if as_json:
        servers = [
            {
                "name": server.name,
                "state": server.state,
                "address": server.address,
                "pid": server.pid,
                "exit_code": server.code,
                "log": str(server.log) if server.log else None,
            }
            for server in status
        ]
        click.echo(json.dumps({"servers": servers}))
        return
    width = max((len(server.name) for server in status), default=0) + 1
    for server in status:
        process = (
            f"pid {server.pid}"
            if server.pid
            else f"exit code {server.code}"
            if server.code is not None
            else ""
        )
        click.echo(f"{server.name:<{width}} {server.state:<9} {server.address:<21} {process}".rstrip())
    if not status:
        click.echo("no stack is running", err=True)
        print_hint("next: millstream up")
