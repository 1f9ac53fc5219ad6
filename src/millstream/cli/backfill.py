"""`millstream backfill`: recompute past results as one batch run, or compare tables with that run."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from millstream.cli.messages import print_hint
from millstream.cli.progress import ProgressReporter
from millstream.cli.project import open_project, project_options

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.backfill.options import BackfillOptions
    from millstream.backfill.report import BackfillReport
    from millstream.checking.check import CheckResult
    from millstream.pipeline.spec_file import LoadedSpec


@click.command("backfill", short_help="Recompute past results, or compare tables with a batch run.")
@click.argument("queries", nargs=-1, metavar="[QUERY]...")
@project_options
@click.option(
    "--from",
    "start",
    metavar="TIME",
    help="Start of the range, inclusive: a date or time, in UTC unless it has a zone.",
)
@click.option("--to", "end", metavar="TIME", help="End of the range, exclusive.")
@click.option(
    "--column",
    metavar="NAME",
    help="Event-time column of the result; needed if the command does not find exactly one.",
)
@click.option(
    "--into", metavar="NAME", help="Write to this table, folder or topic instead of the sink's own."
)
@click.option(
    "--sink", metavar="KIND", help="Kind of the sink (such as delta), if the query has several sinks."
)
@click.option(
    "--replace", is_flag=True, help="Also delete the rows in the range that are not in the recomputed result."
)
@click.option(
    "--compare",
    is_flag=True,
    help="Write nothing; print the rows that differ, and exit with 1 if there are any.",
)
@click.option("--dry-run", is_flag=True, help="Write nothing; print how many rows would be written.")
@click.option(
    "--batches",
    metavar="N-M",
    help="Write the batches with these batch ids, which a run prints, to the sinks that lack them.",
)
@click.option(
    "--accept-gap", is_flag=True, help="Continue even if the sources no longer have all input of the range."
)
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(0),
    default=20,
    show_default=True,
    help="Maximum number of differences of each kind to print.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(
    queries: tuple[str, ...],
    file: Path | None,
    overrides: Sequence[str],
    env_file: Path | None,
    start: str | None,
    end: str | None,
    column: str | None,
    into: str | None,
    sink: str | None,
    batches: str | None,
    limit: int,
    *,
    replace: bool,
    compare: bool,
    dry_run: bool,
    accept_gap: bool,
    as_json: bool,
) -> int:
    """Recompute queries in one batch run over their sources, and write the rows that their sinks lack.

    Only rows whose event time is in the range from --from to --to are written. A window belongs to the range
    if its start is in the range, and is always computed from all its rows. Running the same backfill again
    changes nothing; if a backfill was killed, run it again to finish it. The query may run at the same time,
    because a backfill does not write the rows that the query has yet to write. Stop the query only if you use
    --batches, or if it has no aggregation, no processor and no outer join of streams and you use --replace or
    write to a sink with merge_on: these lock the checkpoint.

    With --compare, nothing is written; the exit code is 1 if the rows of a sink differ from the recomputed
    result.

    With --batches, these batches of one query are recomputed from the offsets in its checkpoint. The command
    writes these batches, with their original batch ids, to the sinks that do not have them.
    """
    from millstream.backfill.options import BackfillOptions, parse_time, require_ordered_range

    if batches is not None:
        if start or end or column or into or replace or compare or accept_gap:
            raise click.UsageError("--batches can be combined only with --sink, --dry-run and --json")
        loaded = open_project(file, overrides, env_file)
        return _batches(loaded, queries, batches, sink, dry=dry_run, as_json=as_json)
    if compare and (dry_run or replace):
        raise click.UsageError("--compare writes nothing: leave out --dry-run and --replace")
    options = BackfillOptions(
        start=None if start is None else parse_time(start),
        end=None if end is None else parse_time(end),
        column=column,
        into=into,
        sink=sink,
        replace=replace,
        compare=compare,
        is_dry_run=dry_run,
        accept_gap=accept_gap,
        limit=limit,
    )
    require_ordered_range(options.start, options.end)
    report = _work(open_project(file, overrides, env_file), queries, options)
    if as_json:
        click.echo(json.dumps(report.to_json(), indent=2))
    else:
        _show(report, options)
    _next(report, options)
    return 0 if report.is_equal or not compare else 1


def _batches(
    loaded: LoadedSpec, queries: tuple[str, ...], text: str, sink: str | None, *, dry: bool, as_json: bool
) -> int:
    """Write single batches, and print a table of them."""
    from millstream.backfill.batches import backfill_batches, parse_batches
    from millstream.cli.table import format_table

    if len(queries) != 1:
        raise click.UsageError("--batches needs the name of exactly one query")
    batch_ids = parse_batches(text)
    with _session(loaded, queries) as (spark, _, steps):
        pipeline = loaded.pipeline
        assert pipeline is not None
        report = backfill_batches(spark, pipeline, queries[0], batch_ids, steps.show, sink=sink, dry=dry)
    if as_json:
        click.echo(json.dumps(report.to_json(), indent=2))
    else:
        click.echo(format_table(*report.table()), nl=False)
    for note in report.notes:
        click.echo(note, err=True)
    print_hint("next: millstream backfill, without --dry-run" if dry else "next: millstream run")
    return 0


def _work(loaded: LoadedSpec, queries: tuple[str, ...], options: BackfillOptions) -> BackfillReport:
    """Check the spec and run the backfill."""
    from millstream.backfill.execute import backfill
    from millstream.engine.run import RunOptions, choose_queries

    with _session(loaded, queries) as (spark, checked, steps):
        pipeline = loaded.pipeline
        assert pipeline is not None
        names = choose_queries(pipeline, RunOptions(select=queries))
        return backfill(spark, pipeline, checked.queries, names, options, steps.show)


@contextmanager
def _session(
    loaded: LoadedSpec, queries: tuple[str, ...]
) -> Iterator[tuple[SparkSession, CheckResult, ProgressReporter]]:
    """Yield a Spark session, the checked spec and a progress reporter."""
    from millstream.checking.check import check
    from millstream.cli.project import exit_on_errors
    from millstream.engine.run import RunOptions, choose_queries
    from millstream.frames.default_file_system import require_schemes
    from millstream.frames.executor_requirements import require_executors
    from millstream.spark.session import open_session, stop_session

    pipeline = loaded.pipeline
    assert pipeline is not None
    choose_queries(pipeline, RunOptions(select=queries))
    steps = ProgressReporter()
    steps.show("starting Spark")
    log = pipeline.folder / ".millstream" / "logs" / "backfill.log"
    spark = open_session(f"{pipeline.name}-backfill", dict(pipeline.spark), log=log)
    try:
        checked = check(loaded, spark)
        if checked.has_errors:
            steps.clear()
            exit_on_errors(
                [finding for finding in checked.findings if finding not in loaded.findings], checked.texts
            )
        require_schemes(spark, pipeline, queries or tuple(pipeline.queries))
        require_executors(spark, pipeline, queries or tuple(pipeline.queries))
        yield spark, checked, steps
    finally:
        steps.clear()
        stop_session(spark)


def _show(report: BackfillReport, options: BackfillOptions) -> None:
    """Print the rows read, the table and the differences."""
    from millstream.cli.table import format_table

    for query, read in report.rows_read.items():
        click.echo(f"{query}: reads " + ", ".join(f"{rows:,} rows of {name}" for name, rows in read.items()))
    click.echo(format_table(*report.table(compare=options.compare)), nl=False)
    for line in report.lines():
        click.echo(line)
    printed = sum(entry.times for outcome in report.outcomes for entry in outcome.differences)
    total = sum(entry.missing + entry.surplus + entry.different for entry in report.outcomes)
    if options.compare and printed < total:
        click.echo(f"{total - printed:,} more rows differ; use --limit to show more")


def _next(report: BackfillReport, options: BackfillOptions) -> None:
    """Print notes and the next command to stderr."""
    for note in dict.fromkeys(report.notes):
        click.echo(note, err=True)
    surplus = (
        sum(outcome.surplus for outcome in report.outcomes) if not (options.replace or options.compare) else 0
    )
    if surplus:
        click.echo(
            f"{surplus:,} rows are not in the recomputed result and were kept; use --replace to delete them",
            err=True,
        )
    following = {
        options.compare and not report.is_equal: "millstream backfill --dry-run",
        options.compare and report.is_equal: "millstream run",
        options.is_dry_run: "millstream backfill, without --dry-run",
        options.writes: "millstream backfill --compare",
    }
    print_hint(f"next: {following[True]}")
