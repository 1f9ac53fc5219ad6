"""`millstream plan`: say what a changed pipeline would do with each checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from millstream.cli.cluster import settings_without_cluster
from millstream.cli.messages import print_hint
from millstream.cli.progress import ProgressReporter
from millstream.cli.project import open_project, project_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.checkpoint.metadata import QueryMetadata
    from millstream.pipeline.spec_file import LoadedSpec
    from millstream.plan.query_plan import QueryPlan


@click.command("plan", short_help="Show whether changed queries can continue from their checkpoints.")
@project_options
@click.option("--select", multiple=True, metavar="QUERY", help="Only this query; can be repeated.")
@click.option("--exclude", multiple=True, metavar="QUERY", help="Exclude this query; can be repeated.")
@click.option(
    "--against",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    metavar="FILE",
    help="Compare with another spec, or with a saved record.json, instead of with the checkpoints.",
)
@click.option(
    "--apply",
    "is_applied",
    is_flag=True,
    help="Change the checkpoints so that the queries can continue; asks before each change.",
)
@click.option("--yes", is_flag=True, help="With --apply: do not ask before each change.")
@click.option(
    "--past",
    type=click.Choice(("backfill", "continue", "now")),
    help="With --apply: what a query that gets a new checkpoint does with earlier data (see above).",
)
@click.option(
    "--fast",
    is_flag=True,
    help="Do not start Spark; the verdict for a query with a changed view is then 'cannot tell'.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(("text", "json", "github", "junit")),
    default="text",
    help="Output format.",
)
@click.option("--json", "as_json", is_flag=True, help="Same as --format json.")
def command(
    file: Path | None,
    overrides: Sequence[str],
    env_file: Path | None,
    select: tuple[str, ...],
    exclude: tuple[str, ...],
    against: Path | None,
    past: str | None,
    *,
    fast: bool,
    form: str,
    as_json: bool,
    is_applied: bool,
    yes: bool,
) -> int:
    """Show whether each query can continue from its checkpoint after a change of the pipeline.

    After some changes, Spark refuses to continue a query from its checkpoint; after other changes, Spark
    continues the query, but writes wrong rows. A checkpoint records the definition of the query that wrote
    it. This command compares the recorded definition with the current one and prints a verdict for each
    query. For each change it explains what Spark does, what the sinks then contain, and what you can do.
    Without --apply, the command writes nothing, and contacts neither brokers nor sinks.

    With --apply, the checkpoints are changed so that each query can continue: a renamed query gets the
    checkpoint of its former name, and state is repartitioned if needed. A query that cannot continue gets a
    new checkpoint, and the old checkpoint is kept in another folder. For such a query, --past says what
    happens to earlier data. 'backfill' recomputes the rows in the query's sinks. 'continue' keeps these rows
    and reads from the old offsets, with empty state. 'now' keeps these rows and skips all records that the
    query has not read yet.

    Exits with 0 if every query can continue from its checkpoint, else with 1.
    """
    from millstream.cli.plan.apply import apply_cures
    from millstream.cli.plan.plan_output import render_plans
    from millstream.engine.run import RunOptions, choose_queries

    loaded = open_project(file, overrides, env_file)
    pipeline = loaded.pipeline
    assert pipeline is not None
    queries = choose_queries(pipeline, RunOptions(select, exclude))
    if is_applied:
        if against is not None or fast or as_json or form != "text":
            raise click.UsageError("--apply can be combined only with --yes, --past, --select and --exclude")
        plans = apply_cures(loaded, queries, past, yes=yes)
        is_done = all(plan.verdict.can_continue for plan in plans)
        print_hint(f"next: {_next(plans, fine=is_done)}")
        return 0 if is_done else 1
    if yes or past is not None:
        raise click.UsageError("--yes and --past need --apply")
    if against is not None:
        plans = _compare_with_file(loaded, queries, against, env_file, fast=fast)
    else:
        plans = _plan_fast(loaded, queries) if fast else _plan(loaded, queries)
    click.echo(render_plans(plans, loaded, "json" if as_json else form, against), nl=False)
    fine = all(plan.verdict.can_continue and not plan.is_unfinished for plan in plans)
    if form == "text" and not as_json:
        print_hint(f"next: {_next(plans, fine=fine)}")
    return 0 if fine else 1


def _next(plans: Sequence[QueryPlan], *, fine: bool) -> str:
    if fine:
        return "millstream run"
    if all(plan.verdict.can_continue for plan in plans):
        return "millstream plan --apply"
    if refused := [plan for plan in plans if plan.verdict.is_refused]:
        return f"undo the change, or: {refused[0].judgements[0].fix}"
    return "read the notes above, then millstream run"


def _plan_fast(loaded: LoadedSpec, queries: Sequence[str]) -> list[QueryPlan]:
    from millstream.engine.recovery.restart_check import plan_without_spark

    assert loaded.pipeline is not None
    return [plan_without_spark(loaded.pipeline, query) for query in queries]


def _plan(loaded: LoadedSpec, queries: Sequence[str]) -> list[QueryPlan]:
    """Compare with the checkpoints, by Spark's plans. Starts no Spark if there is no checkpoint to compare with."""
    from millstream.engine.recovery.restart_check import plan_restart, read_base
    from millstream.frames.build_views import build_frames
    from millstream.plan.query_plan import QueryPlan
    from millstream.spark.session import open_session, stop_session

    pipeline = loaded.pipeline
    assert pipeline is not None
    bases = {query: read_base(pipeline, query) for query in queries}
    if all(isinstance(base, QueryPlan) for base in bases.values()):
        return [base for base in bases.values() if isinstance(base, QueryPlan)]
    steps = ProgressReporter()
    steps.show("starting Spark")
    log = pipeline.folder / ".millstream" / "logs" / "plan.log"
    spark = open_session(f"{pipeline.name}-plan", settings_without_cluster(pipeline), log=log)
    try:
        steps.show("planning the queries")
        frames = build_frames(spark, pipeline, queries=queries)
        return [plan_restart(spark, pipeline, query, frames[pipeline.reads(query)], {}) for query in queries]
    finally:
        steps.clear()
        stop_session(spark)


def _compare_with_file(
    loaded: LoadedSpec, queries: Sequence[str], against: Path, env_file: Path | None, *, fast: bool
) -> list[QueryPlan]:
    """Compare with the queries of another spec, or with one saved record."""
    from millstream.engine.recovery.restart_check import restrict_pinned
    from millstream.engine.recovery.spec_record import (
        declare_queries,
        describe_queries,
        with_relative_paths,
    )
    from millstream.plan.query_plan import QueryPlan, plan_query
    from millstream.spark.session import open_session, stop_session

    pipeline, other = loaded.pipeline, None
    assert pipeline is not None
    before = {}
    if against.suffix == ".json":
        record = _read_record(against, queries)
        before = {record.query: with_relative_paths(pipeline, record)}
        queries = [record.query]
    else:
        other = open_project(against, (), env_file).pipeline
        assert other is not None
        if removed := [query for query in other.queries if query not in pipeline.queries]:
            click.echo(
                f"only in {against}: {', '.join(removed)}; a renamed query begins without its checkpoint",
                err=True,
            )
    names = [query for query in queries if other is None or query in other.queries]
    if fast:
        before = before if other is None else declare_queries(other, names)
        now = declare_queries(pipeline, names, before)
    else:
        steps = ProgressReporter()
        steps.show("starting Spark")
        log = pipeline.folder / ".millstream" / "logs" / "plan.log"
        spark = open_session(f"{pipeline.name}-plan", settings_without_cluster(pipeline), log=log)
        try:
            before = before if other is None else describe_queries(spark, other, names)
            now = describe_queries(spark, pipeline, names, before)
        finally:
            steps.clear()
            stop_session(spark)
    return [
        plan_query(query, str(against), before[query], restrict_pinned(pipeline, now[query]))
        if query in names
        else QueryPlan(query, str(against), is_new=True)
        for query in queries
    ]


def _read_record(file: Path, queries: Sequence[str]) -> QueryMetadata:
    """Return the record in a file. Raises `InvalidInput` if it has none, or one of another query."""
    from millstream.checkpoint.metadata import read_file
    from millstream.diagnostics.failure import CheckpointError, InvalidInput

    try:
        record = read_file(file)
    except CheckpointError as error:
        raise InvalidInput(
            f"{file} is not the record of a query", "name a record.json of a checkpoint, or a spec"
        ) from error
    if record.query not in queries:
        raise InvalidInput(
            f"{file} is the record of query '{record.query}', which is not compared",
            f"the queries are {', '.join(queries)}",
        )
    return record
