"""`millstream checkpoint`: inspect, check, copy, move and rewind the checkpoints of a pipeline."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from millstream.cli.messages import print_hint
from millstream.cli.project import open_project, project_options
from millstream.diagnostics.failure import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.checkpoint.remote.path import CheckpointPath
    from millstream.pipeline.model import Pipeline

_MIB = 1 << 20


@click.group("checkpoint", short_help="Inspect, check, copy, move and rewind checkpoints.")
def command() -> None:
    """Inspect and change the checkpoint folders of the queries.

    A checkpoint that a run is using cannot be changed.
    """


@command.command("list", short_help="List each query's checkpoint: batches, watermark, size, owner.")
@project_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def show_all(file: Path | None, overrides: Sequence[str], env_file: Path | None, *, as_json: bool) -> None:
    """List the checkpoint of each query: batches, watermark, size, and the run that is using it."""
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


@command.command("show", short_help="Print the contents of a query's checkpoint.")
@click.argument("query")
@project_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def show(
    query: str, file: Path | None, overrides: Sequence[str], env_file: Path | None, *, as_json: bool
) -> None:
    """Print the contents of a query's checkpoint: offsets, batches, sizes, versions and stored Spark settings."""
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


@command.command("verify", short_help="Report corrupt or missing files of the checkpoints.")
@click.argument("queries", nargs=-1, metavar="[QUERY]...")
@project_options
def verify(
    queries: tuple[str, ...], file: Path | None, overrides: Sequence[str], env_file: Path | None
) -> int:
    """Read the checkpoint files that a query needs at its start, and report corrupt or missing files.

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
        print_hint("next: millstream checkpoint repair")
    return 3 if damaged else 0


@command.command("repair", short_help="Repair damaged checkpoints if the repair loses no rows.")
@click.argument("queries", nargs=-1, metavar="[QUERY]...")
@project_options
def repair(
    queries: tuple[str, ...], file: Path | None, overrides: Sequence[str], env_file: Path | None
) -> None:
    """Repair damaged checkpoints if the repair loses no rows, as 'run --repair' does.

    Exits with 3 if a checkpoint cannot be repaired.
    """
    from contextlib import ExitStack

    from millstream.engine.recovery.checkpoint_check import check_checkpoints
    from millstream.engine.run import lock_checkpoints

    pipeline = _pipeline(file, overrides, env_file)
    chosen = _chosen(pipeline, queries)
    with ExitStack() as locks:
        lock_checkpoints(pipeline, chosen, locks)
        check_checkpoints(pipeline, chosen, repair=True, say=click.echo)
    print_hint("next: millstream run")


@command.command("copy")
@click.argument("query")
@click.argument("target", type=click.Path(path_type=Path))
@project_options
def copy(
    query: str, target: Path, file: Path | None, overrides: Sequence[str], env_file: Path | None
) -> None:
    """Copy the checkpoint of a query to a new folder."""
    from millstream.checkpoint.operations.transfer import copy_checkpoint, find_absolute_path

    pipeline = _pipeline(file, overrides, env_file)
    copied = copy_checkpoint(_folder(pipeline, query), target.absolute())
    click.echo(f"{query}: copied to {copied}")
    if find_absolute_path(copied, copied) is not None:
        click.echo(
            f"{query}: the state refers to its files by their absolute path, so move the copy back to the folder of "
            "the original before the query continues from it",
            err=True,
        )


@command.command("move")
@click.argument("query")
@click.argument("target", type=click.Path(path_type=Path))
@project_options
def move(
    query: str, target: Path, file: Path | None, overrides: Sequence[str], env_file: Path | None
) -> None:
    """Move the checkpoint of a query to a new folder. Sinks still recognise the batches of the query."""
    from millstream.checkpoint.operations.transfer import move_checkpoint
    from millstream.engine.delivery.batch_spool import spool_folders
    from millstream.engine.delivery.undelivered import require_none_spooled

    pipeline = _pipeline(file, overrides, env_file)
    spools, *_ = spool_folders(_folder(pipeline, query), query)
    if spools not in spool_folders(target.absolute(), query):
        require_none_spooled(pipeline, [query], "would not be found from another folder")
    moved = move_checkpoint(_folder(pipeline, query), target.absolute())
    click.echo(f"{query}: moved to {moved}")
    print_hint(f"next: set queries.{query}.checkpoint to that folder")


@command.command("rename", short_help="Give a renamed query the checkpoint of its former name.")
@click.argument("before")
@click.argument("now")
@project_options
def rename(before: str, now: str, file: Path | None, overrides: Sequence[str], env_file: Path | None) -> None:
    """Rename a checkpoint: query NOW gets the checkpoint that it had under its former name BEFORE.

    Rename the query in the spec first. The checkpoint keeps its id, so sinks still recognise the batches of
    the query.
    """
    from millstream.checkpoint.operations.transfer import move_checkpoint
    from millstream.engine.delivery.batch_spool import list_batches_next_to

    pipeline = _pipeline(file, overrides, env_file)
    target = _folder(pipeline, now)
    if waiting := list_batches_next_to(target.parent / before, before):
        raise InvalidInput(
            f"{len(waiting)} batches of query '{before}' are spooled under its former name",
            "deliver them before you rename the query: 'millstream deadletter replay'",
        )
    source = target.parent / before
    if not source.is_dir():
        raise InvalidInput(
            f"there is no checkpoint folder {source}", "name the former query, or use 'checkpoint move'"
        )
    click.echo(f"{now}: has the checkpoint of {before}, {move_checkpoint(source, target)}")
    print_hint("next: millstream plan")


@command.command("rewind")
@click.argument("query")
@click.option(
    "--to-batch", type=click.IntRange(0), required=True, help="Last batch to keep; the next batch runs again."
)
@project_options
def rewind(
    query: str, to_batch: int, file: Path | None, overrides: Sequence[str], env_file: Path | None
) -> None:
    """Set the checkpoint of a query back to an earlier batch. A copy of the unchanged checkpoint is kept.

    The next run reads the input of all later batches again. A sink that records its batches already contains
    the later batches; the run then exits with 3 until you restore the sink to the same batch, or empty the
    sink.
    """
    from millstream.checkpoint.operations.rewind import rewind_checkpoint
    from millstream.engine.delivery.undelivered import require_none_spooled

    pipeline = _pipeline(file, overrides, env_file)
    require_none_spooled(pipeline, [query], "would take the place of new batches with their numbers")
    backup = rewind_checkpoint(_folder(pipeline, query), to_batch)
    click.echo(f"{query}: continues after batch {to_batch}; as it was: {backup}")
    print_hint(f"next: bring the sinks of '{query}' to batch {to_batch} too, then millstream run")


@command.command("prune", short_help="Delete replaced checkpoints, and corrupt files that were moved away.")
@click.argument("queries", nargs=-1, metavar="[QUERY]...")
@click.option(
    "--yes", is_flag=True, help="Delete the folders; without this option, the command only lists them."
)
@project_options
def prune(
    queries: tuple[str, ...],
    file: Path | None,
    overrides: Sequence[str],
    env_file: Path | None,
    *,
    yes: bool,
) -> None:
    """Delete copies that are no longer needed: corrupt files moved away by a repair, and replaced checkpoints.

    A replaced checkpoint is deleted only after the new checkpoint has committed its first batch.
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
