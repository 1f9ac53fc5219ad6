"""`millstream reset`: delete the checkpoint of a query, so that it starts from scratch."""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from typing import TYPE_CHECKING

import click

from millstream.cli.messages import confirm_deletion, print_hint
from millstream.cli.project import complete_query, open_project, project_options
from millstream.cli.run.sink_folders import find_folder, from_project, list_sink_folders
from millstream.diagnostics.failure import InvalidInput
from millstream.spec.guarantee import Guarantee

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from millstream.checkpoint.remote.path import CheckpointPath
    from millstream.pipeline.model import Pipeline


@click.command("reset", short_help="Delete the checkpoint of a query, so that it starts from scratch.")
@click.argument("queries", nargs=-1, metavar="[QUERY]...", shell_complete=complete_query)
@project_options
@click.option("--all", "all_queries", is_flag=True, help="Reset every query of the spec.")
@click.option("--sinks", is_flag=True, help="Also delete the local folders to which these queries write.")
@click.option("-y", "--yes", is_flag=True, help="Delete without asking.")
def command(
    queries: tuple[str, ...],
    file: Path | None,
    overrides: Sequence[str],
    env_file: Path | None,
    *,
    all_queries: bool,
    sinks: bool,
    yes: bool,
) -> None:
    """Delete the checkpoint of each QUERY: its offsets and its state.

    At the next run, the query reads its sources from their starting position, as a new query does. Use this
    command after a change that prevents the query from continuing from its checkpoint, such as a different
    window or GROUP BY. The rows in the sinks stay unless --sinks is given. Before it deletes anything, the
    command prints what each sink will do when the same rows are written again.

    A query cannot be reset while it runs, or while batches wait for a sink that was down; 'millstream
    deadletter list' shows these batches.
    """
    from millstream.checkpoint.remote.lease import empty_checkpoint
    from millstream.checkpoint.remote.path import RemotePath
    from millstream.engine.delivery.undelivered import require_none_spooled
    from millstream.engine.run import lock_checkpoints

    pipeline = open_project(file, overrides, env_file).pipeline
    assert pipeline is not None
    names = _choose(pipeline, queries, all_queries=all_queries)
    require_none_spooled(pipeline, names, "would be lost")
    folders = list_sink_folders(pipeline, names) if sinks else []
    for name in names:
        _refuse_object_store(pipeline.checkpoint_folder(name))
    with ExitStack() as locks:
        existing = [name for name in names if pipeline.checkpoint_folder(name).is_dir()]
        lock_checkpoints(pipeline, existing, locks)
        for name in names:
            for line in describe_reset(pipeline, name, emptied=folders):
                click.echo(line, err=True)
        if not yes:
            confirm_deletion("delete?")
        doomed: list[CheckpointPath] = [*map(pipeline.checkpoint_folder, existing), *folders]
        for folder in doomed:
            if folder.is_dir():
                is_link = not isinstance(folder, RemotePath) and folder.is_symlink()
                empty_checkpoint(folder) if isinstance(folder, RemotePath) else _delete(folder)
                click.echo(f"deleted {'everything in ' * is_link}{from_project(pipeline, folder)}")
    print_hint("next: millstream check, then millstream run")


def describe_reset(pipeline: Pipeline, name: str, *, emptied: Sequence[Path] = ()) -> Iterator[str]:
    """Yield what is deleted, where the query begins to read, and what happens to the rows in each sink."""
    from millstream.analysis.explain.runtime_behaviour import describe_new_checkpoint
    from millstream.checkpoint.folder import Checkpoint
    from millstream.pipeline.graph import PipelineGraph

    folder = pipeline.checkpoint_folder(name)
    committed = Checkpoint(folder).committed() if folder.is_dir() else None
    past = "no batch is committed" if committed is None else f"batch {committed} is the last one committed"
    yield f"{name}: checkpoint {from_project(pipeline, folder)}, {past}"
    # The last sentence is about a checkpoint that exists.
    for sentence in describe_new_checkpoint(PipelineGraph.of(pipeline), name)[:-1]:
        yield f"  source {sentence}"
    for entry in pipeline.queries[name].to:
        sink, mode = entry.sink, pipeline.queries[name].output_mode
        label = f"  sink {sink.describe().replace(f'{pipeline.folder}/', '')}"
        clear = sink.clear_command().replace(f"{pipeline.folder}/", "")
        if find_folder(sink) in emptied:
            yield f"{label}: its folder is deleted too"
        elif sink.is_rerun_idempotent(mode):
            yield (
                f"{label}: keeps its rows, and a row that comes again replaces the one with its key; "
                f"rows with keys that no longer occur stay, unless you empty it first: {clear}"
            )
        elif sink.guarantee(mode)[0] is Guarantee.EXACTLY_ONCE:
            yield (
                f"{label}: keeps its rows, and the next run is refused, because each would be there twice; "
                f"empty it first: {clear}; or add to its rows: millstream run --adopt"
            )
        else:
            yield f"{label}: gets every row that is read again once more"


def _choose(pipeline: Pipeline, queries: Sequence[str], *, all_queries: bool) -> list[str]:
    if bool(queries) == all_queries:
        raise InvalidInput(
            "reset needs the names of queries, or --all", f"queries: {', '.join(pipeline.queries)}"
        )
    for name in queries:
        if name not in pipeline.queries:
            raise InvalidInput(f"there is no query '{name}'", f"queries: {', '.join(pipeline.queries)}")
    return list(pipeline.queries) if all_queries else list(dict.fromkeys(queries))


def _refuse_object_store(folder: CheckpointPath) -> None:
    """Raise `InvalidInput` for a checkpoint on S3, where a suspended reset could continue under the next run."""
    from millstream.checkpoint.remote.path import RemotePath

    if isinstance(folder, RemotePath) and folder.is_object:
        place = str(folder).replace("s3a://", "s3://", 1)
        raise InvalidInput(
            f"a checkpoint on S3 cannot be reset ({folder}): if this command were suspended, it could later "
            f"delete files of the next run",
            f"end every run of the query and delete the folder: aws s3 rm --recursive {place}; or give the query "
            "another checkpoint",
        )


def _delete(folder: Path) -> None:
    """Delete a folder. Of a symbolic link, delete the content of its folder, so that the next run uses it too."""
    if not folder.is_symlink():
        shutil.rmtree(folder)
        return
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
