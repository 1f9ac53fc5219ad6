"""`millstream show`: print the latest rows of a sink or a view, even while the pipeline runs."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from millstream.cli.cluster import settings_without_cluster
from millstream.cli.messages import print_hint
from millstream.cli.project import complete_query, open_project, project_options
from millstream.cli.table import format_table, terminal_width, to_strict_json
from millstream.diagnostics.failure import InvalidInput, MillstreamError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from millstream.pipeline.model import Pipeline
    from millstream.pipeline.spec_file import LoadedSpec

# Rows that are read to sort and count them. A larger sink is sorted within its newest rows, and not counted.
READ = 10_000


@click.command("show", short_help="Print the latest rows of a view or a sink.")
@click.argument("name", required=False, shell_complete=complete_query)
@project_options
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(1, 1_000_000),
    default=20,
    show_default=True,
    help="Maximum number of rows to print.",
)
@click.option(
    "--sink", "kind", metavar="KIND", help="Kind of the sink (such as delta), if the query has several sinks."
)
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
    """Print the latest rows in the sink of query NAME. If NAME is a view or source, print rows of the newest records.

    A sink is read directly, without Spark, and sorted by its first time column, newest rows first. A view is
    computed by Spark from the newest records of its sources only. Its rows can therefore differ from those of
    a running query, which also has state from earlier records.
    """
    loaded = open_project(file, overrides, env_file)
    pipeline = loaded.pipeline
    assert pipeline is not None
    name = name or next(iter(pipeline.queries))
    if name in pipeline.queries and not as_view:
        names, rows = _of_sink(pipeline, name, kind, limit)
        rows = _newest_first(rows)
        _print_count(rows, limit)
        rows = rows[:limit]
    elif name in pipeline.views or name in pipeline.sources:
        names, rows = _of_view(loaded, name, limit)
    else:
        known_names = ", ".join([*pipeline.queries, *pipeline.views, *pipeline.sources])
        raise InvalidInput(f"there is no query, view or source '{name}'", f"known names: {known_names}")
    if as_json:
        for row in rows:
            click.echo(json.dumps(to_strict_json(dict(zip(names, row, strict=True))), default=str))
    else:
        click.echo(format_table(names, rows, width=terminal_width()), nl=False)


def _of_sink(
    pipeline: Pipeline, query: str, kind: str | None, limit: int
) -> tuple[list[str], list[list[Any]]]:
    """Return at least `limit` of the newest rows of the query's first readable sink, or of the sink of that kind."""
    sinks = [entry.sink for entry in pipeline.queries[query].to]
    candidates = [sink for sink in sinks if kind in (None, sink.kind)]
    if not candidates:
        raise InvalidInput(
            f"query '{query}' has no sink '{kind}'", f"it writes to {', '.join(sink.kind for sink in sinks)}"
        )
    for sink in candidates:
        result = sink.rows(max(limit, READ))
        if result is not None:
            print_hint(f"{query} in {sink.describe().replace(f'{pipeline.folder}/', '')}")
            return result
    raise MillstreamError(
        f"{candidates[0].describe()} cannot be read",
        "show its view instead: millstream show --view NAME",
    )


def _newest_first(rows: list[list[Any]]) -> list[list[Any]]:
    """Sort rows by the first column that has a time in every row, newest first; keep their order if there is none."""
    times = [
        index
        for index in range(len(rows[0]) if rows else 0)
        if all(isinstance(row[index], datetime) for row in rows)
    ]
    return sorted(rows, key=lambda row: row[times[0]], reverse=True) if times else rows


def _print_count(rows: Sequence[object], limit: int) -> None:
    """Say how many of the rows are printed."""
    total = f"{len(rows):,}" if len(rows) < max(limit, READ) else f"more than {len(rows):,}"
    print_hint(f"newest {limit:,} of {total} rows; -n prints more" if len(rows) > limit else f"{total} rows")


def _of_view(loaded: LoadedSpec, name: str, limit: int) -> tuple[list[str], list[list[Any]]]:
    """Compute the rows of a view from the newest records of its sources."""
    from millstream.frames.preview import preview_rows
    from millstream.spark.session import open_session, stop_session

    pipeline = loaded.pipeline
    assert pipeline is not None
    log = pipeline.folder / ".millstream" / "logs" / "show.log"
    print_hint("starting Spark")
    spark = open_session(pipeline.name, settings_without_cluster(pipeline), log=log)
    try:
        return preview_rows(spark, pipeline, name, limit)
    finally:
        stop_session(spark)
