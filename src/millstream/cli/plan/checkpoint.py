"""`millstream checkpoint`: inspect, check, copy, move and rewind the checkpoints of a pipeline."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from millstream.cli.project import open_project, project_options
from millstream.diagnostics.failure import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.checkpoint.remote.path import CheckpointPath
    from millstream.pipeline.model import Pipeline

_MIB = 1 << 20


@click.group("checkpoint", short_help="Inspect, check, copy, move and rewind checkpoints.")
def command() -> None:
    """Handle the checkpoint folders of the queries. Commands that change one are refused while a run uses it."""


@command.command("list")
@project_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def show_all(file: Path | None, overrides: Sequence[str], env_file: Path | None, *, as_json: bool) -> None:
    """List the checkpoint of each query: batches, watermark, size and the run that has it."""
    from millstream.checkpoint.operations.summary import summarize_checkpoint
    from millstream.cli.table import format_table

    pipeline = _pipeline(file, overrides, env_file)
    summaries = [summarize_checkpoint(query, _folder(pipeline, query)) for query in pipeline.queries]
    if as_json:
        click.echo(json.dumps({"checkpoints": [asdict(summary) for summary in summaries]}, indent=2))
        return
    rows = [
        [
            summary.query,
            summary.planned,
            summary.committed,
            summary.watermark or "",
            round(summary.bytes / _MIB, 1),
            summary.owner or "",
        ]
        for summary in summaries
    ]
    names = ["query", "planned", "committed", "watermark", "MiB", "owner"]
    click.echo(format_table(names, rows), nl=False)


@command.command("show")
@click.argument("query")
@project_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def show(
    query: str, file: Path | None, overrides: Sequence[str], env_file: Path | None, *, as_json: bool
) -> None:
    """Print what is in the checkpoint of a query: offsets, batches, sizes, versions, settings that Spark keeps."""
    from millstream.checkpoint.operations.summary import summarize_checkpoint

    pipeline = _pipeline(file, overrides, env_file)
    summary = summarize_checkpoint(query, _folder(pipeline, query))
    if as_json:
        click.echo(json.dumps(asdict(summary), indent=2))
        return
    click.echo(f"{query}: {summary.folder}")
    for name, value in (
        ("id", summary.query_id),
        ("owner", summary.owner or "no run has it"),
        ("batches", f"{summary.oldest} to {summary.planned}; committed: {summary.committed}"),
        ("planned at", summary.written),
        ("watermark", summary.watermark),
        ("state", ", ".join(summary.operators) or "none"),
        ("size", ", ".join(f"{part} {size:,} bytes" for part, size in sorted(summary.sizes.items()))),
        ("versions", ", ".join(f"{what} {version}" for what, version in summary.versions.items())),
    ):
        click.echo(f"  {name}: {value}")
    for source in summary.sources:
        click.echo(f"  source {source['source']}: {json.dumps(source['offsets'])}")
    for setting, value in sorted(summary.settings.items()):
        click.echo(f"  {setting} = {value}")


@command.command("verify")
@click.argument("queries", nargs=-1, metavar="[QUERY]...")
@project_options
def verify(
    queries: tuple[str, ...], file: Path | None, overrides: Sequence[str], env_file: Path | None
) -> int:
    """Read the files that a start needs, and report those that are corrupt or missing.

    Exits with 3 if a checkpoint is damaged.
    """
    from millstream.checkpoint.integrity.corruption import find_damage

    pipeline = _pipeline(file, overrides, env_file)
    damaged = False
    for query in _chosen(pipeline, queries):
        damages = find_damage(_folder(pipeline, query))
        damaged = damaged or bool(damages)
        for damage in damages:
            click.echo(f"{query}: {damage.what}; {damage.why}")
            click.echo(f"  fix: {damage.cure}")
        if not damages:
            click.echo(f"{query}: no damage found")
    if damaged:
        click.echo("next: millstream checkpoint repair", err=True)
    return 3 if damaged else 0


@command.command("repair")
@click.argument("queries", nargs=-1, metavar="[QUERY]...")
@project_options
def repair(
    queries: tuple[str, ...], file: Path | None, overrides: Sequence[str], env_file: Path | None
) -> None:
    """Make the repairs that lose no row, as 'run --repair' does. Exits with 3 if one is not possible."""
    from contextlib import ExitStack

    from millstream.engine.recovery.checkpoint_check import check_checkpoints
    from millstream.engine.run import lock_checkpoints

    pipeline = _pipeline(file, overrides, env_file)
    chosen = _chosen(pipeline, queries)
    with ExitStack() as locks:
        lock_checkpoints(pipeline, chosen, locks)
        check_checkpoints(pipeline, chosen, repair=True, say=click.echo)
    click.echo("next: millstream run", err=True)


@command.command("copy")
@click.argument("query")
@click.argument("target", type=click.Path(path_type=Path))
@project_options
def copy(
    query: str, target: Path, file: Path | None, overrides: Sequence[str], env_file: Path | None
) -> None:
    """Copy the checkpoint of a query to a new folder."""
    from millstream.checkpoint.operations.transfer import copy_checkpoint

    pipeline = _pipeline(file, overrides, env_file)
    click.echo(f"{query}: copied to {copy_checkpoint(_folder(pipeline, query), target.absolute())}")


@command.command("move")
@click.argument("query")
@click.argument("target", type=click.Path(path_type=Path))
@project_options
def move(
    query: str, target: Path, file: Path | None, overrides: Sequence[str], env_file: Path | None
) -> None:
    """Move the checkpoint of a query to a new folder. Sinks recognise it there."""
    from millstream.checkpoint.operations.transfer import move_checkpoint

    pipeline = _pipeline(file, overrides, env_file)
    moved = move_checkpoint(_folder(pipeline, query), target.absolute())
    click.echo(f"{query}: moved to {moved}")
    click.echo(f"next: set queries.{query}.checkpoint to that folder", err=True)


@command.command("rename")
@click.argument("before")
@click.argument("now")
@project_options
def rename(before: str, now: str, file: Path | None, overrides: Sequence[str], env_file: Path | None) -> None:
    """Give the query that is now called NOW the checkpoint that it had as BEFORE.

    Rename the query in the spec first. The sinks recognise the checkpoint by its id.
    """
    from millstream.checkpoint.operations.transfer import move_checkpoint
    from millstream.engine.delivery.batch_spool import list_orphaned_batches

    pipeline = _pipeline(file, overrides, env_file)
    target = _folder(pipeline, now)
    if waiting := [batch for batch in list_orphaned_batches(pipeline) if batch.query == before]:
        raise InvalidInput(
            f"{len(waiting)} batches of query '{before}' wait for a sink under that name",
            "deliver them first under the former name: 'millstream deadletter replay'",
        )
    source = target.parent / before
    if not source.is_dir():
        raise InvalidInput(f"there is no folder {source}", "name the former query, or use 'checkpoint move'")
    click.echo(f"{now}: has the checkpoint of {before}, {move_checkpoint(source, target)}")
    click.echo("next: millstream plan", err=True)


@command.command("rewind")
@click.argument("query")
@click.option("--to-batch", type=click.IntRange(0), required=True, help="The batch that becomes the newest.")
@project_options
def rewind(
    query: str, to_batch: int, file: Path | None, overrides: Sequence[str], env_file: Path | None
) -> None:
    """Let a query continue after an earlier batch. Its checkpoint as it was is kept as a copy.

    The next run reads the input of later batches again. A sink that remembers its batches has them already,
    and the run exits with 3 until you restore the sink to that batch too, or empty it.
    """
    from millstream.checkpoint.operations.rewind import rewind_checkpoint

    pipeline = _pipeline(file, overrides, env_file)
    backup = rewind_checkpoint(_folder(pipeline, query), to_batch)
    click.echo(f"{query}: continues after batch {to_batch}; as it was: {backup}")
    click.echo(f"next: bring the sinks of '{query}' to batch {to_batch} too, then millstream run", err=True)


@command.command("prune")
@click.argument("queries", nargs=-1, metavar="[QUERY]...")
@click.option("--yes", is_flag=True, help="Delete; without it the folders are only listed.")
@project_options
def prune(
    queries: tuple[str, ...],
    file: Path | None,
    overrides: Sequence[str],
    env_file: Path | None,
    *,
    yes: bool,
) -> None:
    """Delete what was kept: corrupt files that a repair moved away, and checkpoints that were replaced.

    The former checkpoint of one that has yet to commit a batch stays.
    """
    from millstream.checkpoint.former_checkpoint import find_base
    from millstream.checkpoint.lock import CheckpointLock
    from millstream.checkpoint.remote.path import delete_folder
    from millstream.checkpoint.replacement import list_backups

    pipeline = _pipeline(file, overrides, env_file)
    for query in _chosen(pipeline, queries):
        folder = _folder(pipeline, query)
        leftovers = [
            *(backup for backup in list_backups(folder) if backup != find_base(folder)),
            *(path for path in [folder / "_millstream" / "aside"] if path.is_dir()),
        ]
        if not leftovers:
            continue
        with CheckpointLock(folder, "prune"):
            for path in leftovers:
                click.echo(f"{query}: {'deleted' if yes else 'would delete'} {path}")
                if yes:
                    delete_folder(path)


def _pipeline(file: Path | None, overrides: Sequence[str], env_file: Path | None) -> Pipeline:
    pipeline = open_project(file, overrides, env_file).pipeline
    assert pipeline is not None
    return pipeline


def _chosen(pipeline: Pipeline, queries: tuple[str, ...]) -> list[str]:
    """Return the named queries that have a checkpoint, or all that have one."""
    from millstream.engine.run import RunOptions, choose_queries

    return [
        query
        for query in choose_queries(pipeline, RunOptions(select=queries))
        if _folder(pipeline, query).is_dir()
    ]


def _folder(pipeline: Pipeline, query: str) -> CheckpointPath:
    """Return the checkpoint folder of a query. Raises `InvalidInput` for an unknown query."""
    if query not in pipeline.queries:
        raise InvalidInput(f"there is no query '{query}'", f"the queries are {', '.join(pipeline.queries)}")
    return pipeline.checkpoint_folder(query)
