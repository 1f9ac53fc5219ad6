"""`millstream jars`: fetch the jars Spark and the local broker need, and verify them."""

from __future__ import annotations

import click

from millstream.cli.steps import Steps
from millstream.runtime import home, jars


@click.command("jars")
@click.argument("action", type=click.Choice(["list", "fetch"]), default="list")
@click.option("--verify", is_flag=True, help="Hash every jar again; a wrong one is fetched again.")
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON.")
def command(action: str, verify: bool, as_json: bool) -> None:
    """List the locked jars, or fetch those that are missing.

    Each is known by its sha256; none is used that is not the locked one.
    """
    if action == "fetch" or verify:
        steps = Steps()
        for group in jars.locked():
            jars.ensure(group, steps.tell, verify=verify)
        steps.done()
    _print(as_json=as_json)
    if action == "fetch" or verify:
        click.echo(f"all jars are verified in {home.home() / 'jars'}", err=True)


def _print(*, as_json: bool) -> None:
    import json

    rows = [
        {"group": group, "at": jar.at, "bytes": jar.size, "sha256": jar.sha256, "cached": path.is_file()}
        for group, entries in jars.locked().items()
        for jar, path in zip(entries, jars.paths(group), strict=True)
    ]
    if as_json:
        click.echo(json.dumps({"folder": str(home.home() / "jars"), "jars": rows}, indent=1))
        return
    for row in rows:
        click.echo(f"{'cached ' if row['cached'] else 'missing'}  {row['group']:<6}  {row['at']}")
