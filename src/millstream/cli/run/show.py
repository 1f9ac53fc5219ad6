"""`millstream show`: print the latest rows of a sink or a view, even while the pipeline runs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from millstream.cli.project import open_project, project_options
from millstream.cli.table import format_table
from millstream.diagnostics.failure import MillstreamError, WrongUse

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from millstream.pipeline.model import Pipeline
    from millstream.pipeline.spec_file import Loaded


@click.command("show", short_help="Print the latest rows of a view or a sink.")
@click.argument("name", required=False)
@project_options
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(1, 1_000_000),
    default=20,
    show_default=True,
    help="Number of rows to print.",
)
@click.option("--sink", "kind", metavar="KIND", help="The sink, for a query with several.")
@click.option("--view", "as_view", is_flag=True, help="Treat NAME as a view or source, not as a query.")
@click.option("--json", "as_json", is_flag=True, help="Print each row as one JSON object per line.")
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
    """Print the latest rows that query NAME wrote, or the rows of view or source NAME for the newest input.

    A sink is read directly, without Spark. A view is computed by Spark from the newest records of its sources
    alone, so its rows can differ from those that the running stream computes with its state.
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
        known_names = ", ".join([*pipeline.queries, *pipeline.views, *pipeline.sources])
        raise WrongUse(f"there is no query, view or source '{name}'", f"known names: {known_names}")
    if as_json:
        for row in rows:
            click.echo(json.dumps(dict(zip(names, row, strict=True)), default=str))
    else:
        click.echo(format_table(names, rows), nl=False)


def _of_sink(
    pipeline: Pipeline, query: str, kind: str | None, limit: int
) -> tuple[list[str], list[list[Any]]]:
    """Return the newest rows of the query's first readable sink, or of the sink of that kind."""
    sinks = [entry.sink for entry in pipeline.queries[query].to]
    candidates = [sink for sink in sinks if kind in (None, sink.kind)]
    if not candidates:
        raise WrongUse(
            f"query '{query}' has no sink '{kind}'", f"it writes to {', '.join(sink.kind for sink in sinks)}"
        )
    for sink in candidates:
        result = sink.rows(limit)
        if result is not None:
            click.echo(f"{query} in {sink.describe()}", err=True)
            return result
    raise MillstreamError(
        f"{candidates[0].describe()} cannot be read back",
        "show its view instead: millstream show --view NAME",
    )


def _of_view(loaded: Loaded, name: str, limit: int) -> tuple[list[str], list[list[Any]]]:
    """Compute the rows of a view from the newest records of its sources."""
    from millstream.frames.preview import preview_rows
    from millstream.spark.session import open_session

    pipeline = loaded.pipeline
    assert pipeline is not None
    log = pipeline.folder / ".millstream" / "logs" / "show.log"
    click.echo("starting Spark", err=True)
    spark = open_session(pipeline.name, dict(pipeline.spark), log=log)
    try:
        return preview_rows(spark, pipeline, name, limit)
    finally:
        spark.stop()
