"""`millstream ps`: show what of the local stack is running."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

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
    """Show the local servers of a project: state, address and process."""
    seen = stack.status(find_spec(file).parent)
    if as_json:
        servers = [
            {
                "name": one.name,
                "state": one.state,
                "address": one.address,
                "pid": one.pid,
                "exit_code": one.code,
                "log": str(one.log) if one.log else None,
            }
            for one in seen
        ]
        click.echo(json.dumps({"servers": servers}))
        return
    for one in seen:
        process = f"pid {one.pid}" if one.pid else f"exit code {one.code}" if one.code is not None else ""
        click.echo(f"{one.name:<9} {one.state:<9} {one.address:<21} {process}".rstrip())
    if not seen:
        click.echo("no stack is running", err=True)
        click.echo("next: millstream up", err=True)
