"""`millstream jars`: download and verify the jars that Spark and the local servers need."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from millstream.cli.progress import ProgressReporter
from millstream.diagnostics.failure import InvalidInput
from millstream.spark import cache_folder
from millstream.spark.conditional_writes.compiled_jar import ensure_s3_jars
from millstream.spark.jars import jar_cache

if TYPE_CHECKING:
    from collections.abc import Sequence


@click.command("jars")
@click.argument("action", type=click.Choice(["list", "fetch", "paths"]), default="list")
@click.argument("groups", nargs=-1, type=click.Choice(list(jar_cache.locked_jars())), metavar="[GROUP]...")
@click.option(
    "--verify", is_flag=True, help="Verify the checksum of every jar, and download damaged jars again."
)
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON.")
def command(action: str, groups: tuple[str, ...], verify: bool, as_json: bool) -> None:
    """List the jars that Millstream uses, or those of each GROUP, or download those that are missing.

    'fetch' downloads the jars that every run and every local stack needs. 'fetch hdfs' downloads the jars for
    'millstream up --hdfs', 'fetch s3-server' those for 'millstream up --s3', and 'fetch s3' those for a spec
    that uses s3a://. 'paths' prints the jars that Spark needs, and those of each GROUP, as one
    comma-separated list for spark-submit --jars. Millstream uses a jar only if its SHA-256 checksum is the
    one that this version of Millstream expects.
    """
    if action == "paths":
        if as_json or verify:
            raise InvalidInput("'paths' cannot be combined with --json or --verify", "leave them out")
        names = dict.fromkeys(("spark", *groups))
        paths = [
            path
            for group in names
            for path in (ensure_s3_jars() if group == "s3" else jar_cache.ensure_jars(group))
        ]
        click.echo(",".join(map(str, paths)))
        return
    if action == "fetch" or verify:
        steps = ProgressReporter()
        for group in groups or jar_cache.REQUIRED:
            jar_cache.ensure_jars(group, steps.show, verify=verify)
        steps.clear()
    _print(groups if action == "list" else (), as_json=as_json)
    if action == "fetch" or verify:
        click.echo(f"all jars are verified in {cache_folder.cache_home() / 'jars'}", err=True)


def _print(groups: Sequence[str], *, as_json: bool) -> None:
    """Print the jars of some groups, or of all if none is named."""
    import json

    rows = [
        {"group": group, "at": jar.at, "bytes": jar.size, "sha256": jar.sha256, "cached": path.is_file()}
        for group, entries in jar_cache.locked_jars().items()
        if not groups or group in groups
        for jar, path in zip(entries, jar_cache.jar_paths(group), strict=True)
    ]
    if as_json:
        click.echo(json.dumps({"folder": str(cache_folder.cache_home() / "jars"), "jars": rows}, indent=1))
        return
    for row in rows:
        click.echo(f"{'cached ' if row['cached'] else 'missing'}  {row['group']:<6}  {row['at']}")
