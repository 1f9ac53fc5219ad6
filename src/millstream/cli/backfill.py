"""`millstream backfill`: the same spec over old data as one batch, or a comparison of its tables with that batch."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from millstream.cli.project import open_project, project_options
from millstream.cli.steps import Steps

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from millstream.backfill.report import Report
    from millstream.backfill.wish import Wish
    from millstream.pipeline.load import Loaded


@click.command("backfill", short_help="Compute old results again, or compare tables with a batch run.")
@click.argument("queries", nargs=-1, metavar="[QUERY]…")
@project_options
@click.option(
    "--from", "start", metavar="TIME", help="First event time, included: a date or time, in UTC or a zone."
)
@click.option("--to", "end", metavar="TIME", help="Last event time, excluded.")
@click.option("--column", metavar="NAME", help="The column of the rows that tells their time.")
@click.option("--into", metavar="NAME", help="Write to another table, folder or topic.")
@click.option("--sink", metavar="KIND", help="Which sink, for a query with several.")
@click.option("--replace", is_flag=True, help="Take away the rows of the range that the answer has not.")
@click.option("--compare", is_flag=True, help="Write nothing; tell every row that differs, and end with 1.")
@click.option("--dry-run", is_flag=True, help="Write nothing; tell how many rows would be written.")
@click.option("--accept-gap", is_flag=True, help="Go on where sources no longer have all input of the range.")
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(0),
    default=20,
    show_default=True,
    help="Differences told of each kind.",
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
    limit: int,
    *,
    replace: bool,
    compare: bool,
    dry_run: bool,
    accept_gap: bool,
    as_json: bool,
) -> int:
    """Compute what queries give over all that their sources hold, as one batch, and write what their sinks lack.

    Of the answer those rows count whose time lies in the range; windows count by their start, and are computed
    whole. A second backfill changes nothing, and one that was killed is finished by the next. A running query is
    not disturbed: no lock is taken, and rows that it has yet to write itself are left to it.

    With --compare nothing is written, and it ends with 1 when a sink differs from the answer.
    """
    from millstream.backfill.wish import Wish, moment, ordered

    if compare and (dry_run or replace):
        raise click.UsageError("--compare writes nothing: leave out --dry-run and --replace")
    wish = Wish(
        start=None if start is None else moment(start),
        end=None if end is None else moment(end),
        column=column,
        into=into,
        sink=sink,
        replace=replace,
        compare=compare,
        dry=dry_run,
        accept_gap=accept_gap,
        limit=limit,
    )
    ordered(wish.start, wish.end)
    report = _work(open_project(file, overrides, env_file), queries, wish)
    if as_json:
        click.echo(json.dumps(report.to_json(), indent=2))
    else:
        _show(report, wish)
    _next(report, wish)
    return 0 if report.fine or not compare else 1


def _work(loaded: Loaded, queries: tuple[str, ...], wish: Wish) -> Report:
    """Check the spec with Spark, then do what is wished."""
    from millstream.backfill.work import backfill
    from millstream.cli.project import refuse
    from millstream.runtime.checking import check
    from millstream.runtime.run import RunOptions, chosen
    from millstream.runtime.session import open_session, stop

    pipeline = loaded.pipeline
    assert pipeline is not None
    names = chosen(pipeline, RunOptions(select=queries))
    steps = Steps()
    steps.tell("starting Spark")
    log = pipeline.folder / ".millstream" / "logs" / "backfill.log"
    spark = open_session(f"{pipeline.name}-backfill", dict(pipeline.spark), log=log)
    try:
        checked = check(loaded, spark)
        if checked.failed:
            steps.done()
            refuse([found for found in checked.findings if found not in loaded.findings], checked.texts)
        return backfill(spark, pipeline, checked.queries, names, wish, steps.tell)
    finally:
        steps.done()
        stop(spark)


def _show(report: Report, wish: Wish) -> None:
    """The table, each difference, and what is to be said."""
    from millstream.cli.table import table

    for query, read in report.read.items():
        click.echo(f"{query}: reads " + ", ".join(f"{rows:,} rows of {name}" for name, rows in read.items()))
    click.echo(table(*report.table(compare=wish.compare)), nl=False)
    for line in report.lines():
        click.echo(line)
    told = sum(one.times for outcome in report.outcomes for one in outcome.differences)
    every = sum(one.missing + one.surplus + one.different for one in report.outcomes)
    if wish.compare and told < every:
        click.echo(f"{every - told:,} more rows differ: --limit shows more of them")


def _next(report: Report, wish: Wish) -> None:
    """Notes and the next command, for a person."""
    for note in dict.fromkeys(report.notes):
        click.echo(note, err=True)
    left = sum(one.surplus for one in report.outcomes) if not (wish.replace or wish.compare) else 0
    if left:
        click.echo(
            f"{left:,} rows that the answer has not stay where they are; --replace takes them away", err=True
        )
    following = {
        wish.compare and not report.fine: "millstream backfill --dry-run",
        wish.compare and report.fine: "millstream run",
        wish.dry: "millstream backfill, without --dry-run",
        wish.writes: "millstream backfill --compare",
    }
    click.echo(f"next: {following[True]}", err=True)
