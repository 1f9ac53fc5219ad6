"""`millstream show`: the latest rows of a sink or a view, while the pipeline runs or not."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from millstream.cli.project import open_project, project_options
from millstream.cli.table import table
from millstream.diagnostics.failure import MillstreamError, WrongUse

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from millstream.pipeline.load import Loaded
    from millstream.pipeline.model import Pipeline


@click.command("show", short_help="Print the latest rows of a view or a sink.")
@click.argument("name", required=False)
@project_options
@click.option(
    "-n", "--limit", type=click.IntRange(1, 1_000_000), default=20, show_default=True, help="Rows to print."
)
@click.option("--sink", "kind", metavar="KIND", help="Which sink, for a query with several.")
@click.option("--view", "as_view", is_flag=True, help="NAME is a view or source, not a query.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line for each row.")
def command(
    name: str | None,
    file: Path | None,
    overrides: Sequence[str],
    env_file: Path | None,
    limit: int,
    kind: str | None,
    *,
    as_view: bool,
    as_json: bool,
) -> None:
    """Print rows that query NAME wrote, or rows of view or source NAME over the newest input.

    A sink is read as it stands, without Spark. A view is computed by Spark over the newest records of its
    sources: what it shows was made for this look and is not what the stream has in its state.
    """
    loaded = open_project(file, overrides, env_file)
    pipeline = loaded.pipeline
    assert pipeline is not None
    name = name or next(iter(pipeline.queries))
    if name in pipeline.queries and not as_view:
        names, rows = _of_sink(pipeline, name, kind, limit)
    elif name in pipeline.views or name in pipeline.sources:
        names, rows = _of_view(loaded, name, limit)
    else:
        known = ", ".join([*pipeline.queries, *pipeline.views, *pipeline.sources])
        raise WrongUse(f"there is no query, view or source '{name}'", f"there are {known}")
    if as_json:
        for row in rows:
            click.echo(json.dumps(dict(zip(names, row, strict=True)), default=str))
    else:
        click.echo(table(names, rows), nl=False)


def _of_sink(
    pipeline: Pipeline, query: str, kind: str | None, limit: int
) -> tuple[list[str], list[list[Any]]]:
    """The newest rows of a query's first sink that can be read, or of the one that is named."""
    sinks = [entry.sink for entry in pipeline.queries[query].to]
    wanted = [sink for sink in sinks if kind in (None, sink.kind)]
    if not wanted:
        raise WrongUse(
            f"query '{query}' has no sink '{kind}'", f"it writes to {', '.join(sink.kind for sink in sinks)}"
        )
    for sink in wanted:
        found = sink.rows(limit)
        if found is not None:
            click.echo(f"{query} in {sink.describe()}", err=True)
            return found
    raise MillstreamError(
        f"{wanted[0].describe()} cannot be read back", "look at its view instead: millstream show --view NAME"
    )


def _of_view(loaded: Loaded, name: str, limit: int) -> tuple[list[str], list[list[Any]]]:
    """Rows of a view over the newest records of its sources."""
    from millstream.runtime.look import look
    from millstream.runtime.session import open_session

    pipeline = loaded.pipeline
    assert pipeline is not None
    log = pipeline.folder / ".millstream" / "logs" / "show.log"
    click.echo("starting Spark", err=True)
    spark = open_session(pipeline.name, dict(pipeline.spark), log=log)
    try:
        return look(spark, pipeline, name, limit)
    finally:
        spark.stop()
