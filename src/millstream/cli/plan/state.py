"""`millstream state`: look into the state of a query."""

from __future__ import annotations

import json
import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from millstream.cli.cluster import settings_without_cluster
from millstream.cli.progress import ProgressReporter
from millstream.cli.project import open_project, project_options
from millstream.diagnostics.failure import CheckpointError, InvalidInput, NotReady

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from millstream.checkpoint.remote.path import CheckpointPath
    from millstream.state.stores import StateStore

# The fields of JSON that say which state a key is in. A column with such a name gets an underscore.
_LABELS = ("operator", "state")
# Errors of the operating system that name no file.
_FULL_DISK = ("No space left on device", "Disk quota exceeded")
_operator = click.option(
    "--operator",
    type=click.IntRange(0),
    help="Only the operator with this number, which 'state size' prints.",
)
_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")


@click.group("state", short_help="Print, compare or export the state of a query.")
def command() -> None:
    """Read the state of a query from its checkpoint, with Spark's state data source. Nothing is changed."""


@command.command("show", short_help="Print the keys and values in the state.")
@click.argument("query")
@_operator
@click.option(
    "--batch", type=click.IntRange(0), help="Show the state after this batch. [default: the newest]"
)
@click.option("--key", metavar="TEXT", help="Only keys whose text contains this string.")
@click.option(
    "-n", "--limit", type=click.IntRange(1), default=20, show_default=True, help="Number of keys to print."
)
@_json
@project_options
def show(
    query: str,
    operator: int | None,
    batch: int | None,
    key: str | None,
    limit: int,
    file: Path | None,
    overrides: Sequence[str],
    env_file: Path | None,
    *,
    as_json: bool,
) -> None:
    """Print the keys and values in the state, and the watermark at which each key is removed."""
    from millstream.state.read_state import read_store

    with _stores(query, operator, file, overrides, env_file) as (spark, folder, stores):
        for store in stores:
            frame = read_store(spark, folder, store, batch)
            if key is not None:
                frame = frame.where(_contains(frame, store, key))
            _print(frame, store, limit, as_json=as_json)


@command.command("size", short_help="Print the number of keys, and how it grew over the last batches.")
@click.argument("query")
@_operator
@click.option(
    "--batches",
    type=click.IntRange(1),
    default=2,
    show_default=True,
    help="Number of batches over which the growth is computed.",
)
@_json
@project_options
def size(
    query: str,
    operator: int | None,
    batches: int,
    file: Path | None,
    overrides: Sequence[str],
    env_file: Path | None,
    *,
    as_json: bool,
) -> None:
    """Print the number of keys by operator and partition, and their growth over the last batches."""
    from millstream.cli.table import format_table
    from millstream.state.read_state import measure_stores

    with _stores(query, operator, file, overrides, env_file) as (spark, folder, stores):
        rows = [row for store in stores for row in measure_stores(spark, folder, store, batches)]
    if as_json:
        for row in rows:
            click.echo(json.dumps(row))
    elif rows:
        click.echo(format_table(list(rows[0]), [list(row.values()) for row in rows]), nl=False)


@command.command("diff", short_help="Print how the state changed between two batches.")
@click.argument("query")
@click.option(
    "--batch",
    "batches",
    type=click.IntRange(0),
    multiple=True,
    required=True,
    help="A batch; give the option twice, the earlier batch first.",
)
@_operator
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(1),
    default=20,
    show_default=True,
    help="Maximum number of changes to print.",
)
@_json
@project_options
def diff(
    query: str,
    batches: tuple[int, ...],
    operator: int | None,
    limit: int,
    file: Path | None,
    overrides: Sequence[str],
    env_file: Path | None,
    *,
    as_json: bool,
) -> None:
    """Print how the state changed between two batches: pass --batch twice, the earlier batch first."""
    from millstream.state.read_state import read_changes

    if len(batches) != 2 or batches[0] >= batches[1]:
        raise InvalidInput(
            "a difference needs two batches, the earlier one first",
            "pass --batch twice, such as --batch 3 --batch 5",
        )
    with _stores(query, operator, file, overrides, env_file) as (spark, folder, stores):
        for store in stores:
            _print(
                read_changes(spark, folder, store, batches[0] + 1, batches[1]), store, limit, as_json=as_json
            )


@command.command("export", short_help="Write the state to Parquet files.")
@click.argument("query")
@click.argument("target", type=click.Path(path_type=Path))
@_operator
@click.option(
    "--batch", type=click.IntRange(0), help="Export the state after this batch. [default: the newest]"
)
@project_options
def export(
    query: str,
    target: Path,
    operator: int | None,
    batch: int | None,
    file: Path | None,
    overrides: Sequence[str],
    env_file: Path | None,
) -> None:
    """Write the state to Parquet files: one folder in TARGET for each operator, join side and state variable."""
    from millstream.state.read_state import read_store

    with _stores(query, operator, file, overrides, env_file) as (spark, folder, stores):
        try:
            target.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            is_file = isinstance(error, FileExistsError | NotADirectoryError)
            problem = f"{target} {'is no folder' if is_file else 'cannot be created'}: {error.strerror}"
            raise InvalidInput(problem, "name another folder") from error
        for store in stores:
            place = target / "-".join(filter(None, [str(store.operator), store.part]))
            if place.exists():
                raise InvalidInput(f"{place} exists", "name a folder that does not exist")
            _write(read_store(spark, folder, store, batch), place)
            click.echo(f"{store.label}: {place}")


def _write(frame: DataFrame, place: Path) -> None:
    """Write Parquet files into a new folder, and delete it if that fails.

    Spark reads the state only while it writes. Raises `NotReady` if an error of Java is about the folder or its disk,
    and `CheckpointError` for another one.
    """
    from py4j.protocol import Py4JJavaError

    from millstream.checkpoint.remote.path import to_spark_path

    try:
        frame.write.parquet(to_spark_path(place))
    except BaseException as error:
        shutil.rmtree(place, ignore_errors=True)
        if not isinstance(error, Py4JJavaError):
            raise
        cause = error.java_exception
        while cause.getCause() is not None:
            cause = cause.getCause()
        reason = str(cause.toString()).splitlines()[0]
        problem = f"the state cannot be exported to {place}: {reason}"
        if any(text in reason for text in (str(place.absolute()), *_FULL_DISK)):
            fix = "free space on its disk, or name a folder that this user may write to"
            raise NotReady(problem, fix) from error
        fix = "look for damaged files with 'millstream checkpoint verify'"
        raise CheckpointError(problem, fix) from error


@contextmanager
def _stores(
    query: str, operator: int | None, file: Path | None, overrides: Sequence[str], env_file: Path | None
) -> Iterator[tuple[SparkSession, CheckpointPath, list[StateStore]]]:
    """Yield a session, the checkpoint's folder and its chosen stores."""
    from pyspark.errors import PySparkException

    from millstream.checkpoint import metadata
    from millstream.spark.session import open_session, stop_session
    from millstream.state.stores import choose_stores, list_stores

    pipeline = open_project(file, overrides, env_file).pipeline
    assert pipeline is not None
    if query not in pipeline.queries:
        raise InvalidInput(f"there is no query '{query}'", f"the queries are {', '.join(pipeline.queries)}")
    folder = pipeline.checkpoint_folder(query)
    if not (folder / "state").is_dir():
        click.echo(f"{query}: has no state", err=True)
        raise click.exceptions.Exit(0)
    steps = ProgressReporter()
    steps.show("starting Spark")
    log = pipeline.folder / ".millstream" / "logs" / "state.log"
    spark = open_session(f"{pipeline.name}-state", settings_without_cluster(pipeline), log=log)
    steps.clear()
    try:
        yield spark, folder, choose_stores(list_stores(spark, folder, metadata.read(folder)), operator)
    except PySparkException as error:
        reason = str(error).splitlines()[0]
        raise CheckpointError(
            f"the state of query '{query}' cannot be read: {reason}",
            "name a batch that Spark still keeps; 'millstream checkpoint show' lists them",
        ) from error
    finally:
        stop_session(spark)


def _contains(frame: DataFrame, store: StateStore, text: str) -> Any:
    """Return the condition that one of the key's columns contains a text."""
    from pyspark.sql import functions as F

    count = max(1, len(store.recorded.keys) if store.recorded else 1)
    columns = [F.col(f"`{name}`").cast("string") for name in frame.columns[:count]]
    return F.concat_ws(" ", *columns).contains(text)


def _print(frame: DataFrame, store: StateStore, limit: int, *, as_json: bool) -> None:
    from millstream.cli.table import format_table, to_strict_json
    from millstream.state.state_sample import format_state_value

    rows = frame.limit(limit).collect()
    if as_json:
        for row in rows:
            values = {
                f"{name}_" if name in _LABELS else name: to_strict_json(value)
                for name, value in row.asDict(recursive=True).items()
            }
            click.echo(json.dumps({"operator": store.operator, "state": store.label, **values}, default=str))
        return
    click.echo(f"operator {store.operator}: {store.label}, batches {store.first_batch} to {store.last_batch}")
    cells = [[format_state_value(value) for value in row] for row in rows]
    click.echo(format_table(frame.columns, cells), nl=False)
