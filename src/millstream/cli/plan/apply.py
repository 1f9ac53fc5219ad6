"""Walk through the cures of `millstream plan --apply`, with a question each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from millstream.cli.messages import confirm, require_answer
from millstream.cli.plan.plan_output import render_plans
from millstream.cli.progress import ProgressReporter
from millstream.diagnostics.failure import InvalidInput
from millstream.plan.verdict import RestartVerdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from millstream.analysis.query.plan_model import PlannedQuery
    from millstream.backfill.fresh_start import PastChoice
    from millstream.checkpoint.remote.path import CheckpointPath
    from millstream.pipeline.model import Pipeline
    from millstream.pipeline.spec_file import LoadedSpec
    from millstream.plan.query_plan import QueryPlan

_PARTITIONS = "spark.sql.shuffle.partitions"
_SKIP = "skip"


def apply_cures(
    loaded: LoadedSpec, queries: Sequence[str], past: str | None, *, yes: bool
) -> list[QueryPlan]:
    """Apply what makes each query continue, after a question unless `yes`. Returns the plans after that."""
    from millstream.checking.check import check
    from millstream.cli.project import exit_on_errors
    from millstream.engine.recovery.restart_check import plan_restart
    from millstream.frames.build_views import build_frames
    from millstream.spark.session import open_session, stop_session

    pipeline = loaded.pipeline
    assert pipeline is not None
    for query in queries:
        _bring_checkpoint(pipeline, query, yes=yes)
    steps = ProgressReporter()
    steps.show("starting Spark")
    log = pipeline.folder / ".millstream" / "logs" / "plan.log"
    spark = open_session(f"{pipeline.name}-plan", dict(pipeline.spark), log=log)
    try:
        steps.show("planning the queries")
        checked = check(loaded, spark)
        if checked.has_errors:
            steps.clear()
            exit_on_errors(
                [finding for finding in checked.findings if finding not in loaded.findings], checked.texts
            )
        views = build_frames(spark, pipeline, queries=queries)
        frames = {query: views[pipeline.reads(query)] for query in queries}
        plans = [plan_restart(spark, pipeline, query, frames[query], {}) for query in queries]
        steps.clear()
        click.echo(render_plans(plans, loaded, "text"), nl=False)
        planned = {item.name: item for item in checked.queries}
        cures = _Cures(spark, pipeline, planned, frames, past, steps, yes=yes)
        applied = [cures.apply(plan) for plan in plans]
        if not any(applied):
            return plans
        return [plan_restart(spark, pipeline, query, frames[query], {}) for query in queries]
    finally:
        steps.clear()
        stop_session(spark)


def _bring_checkpoint(pipeline: Pipeline, query: str, *, yes: bool) -> None:
    """Offer the checkpoint that a query without one had under another name or in another folder."""
    from millstream.checkpoint.operations.transfer import move_checkpoint
    from millstream.engine.checkpoint_changes.former_folder import find_former_folder
    from millstream.engine.delivery.batch_spool import list_batches_next_to

    former = find_former_folder(pipeline, query)
    target = pipeline.checkpoint_folder(query)
    if former is None:
        return
    folder, name = former
    if list_batches_next_to(folder, name):
        click.echo(
            f"{query}: batches of '{name}' wait for a sink; 'millstream deadletter replay' delivers them"
        )
        return
    what = f"was written as '{name}'" if name != query else "is where it was"
    names = [_name(pipeline, path) for path in (folder, target)]
    question = f"{query}: has no checkpoint, and {names[0]} {what}. Move it to {names[1]}?"
    if yes or confirm(question):
        move_checkpoint(folder, target)
        click.echo(f"{query}: has the checkpoint {names[1]}, which was {names[0]}")


def _name(pipeline: Pipeline, path: CheckpointPath) -> str:
    """Return a path from the project's folder, if it is inside."""
    return str(path).removeprefix(f"{pipeline.folder}/")


class _Cures:
    """The cures of one call."""

    def __init__(
        self,
        spark: SparkSession,
        pipeline: Pipeline,
        planned: Mapping[str, PlannedQuery],
        frames: Mapping[str, DataFrame],
        past: str | None,
        steps: ProgressReporter,
        *,
        yes: bool,
    ) -> None:
        self.spark, self.pipeline, self.planned, self.frames = spark, pipeline, planned, frames
        self.past, self.steps, self.yes = past, steps, yes

    def apply(self, plan: QueryPlan) -> bool:
        """Apply the cure of one query. Returns whether anything was done."""
        from millstream.checkpoint import former_checkpoint

        folder = self.pipeline.checkpoint_folder(plan.query)
        former = None if not folder.is_dir() else former_checkpoint.read(folder)
        is_pending = former is not None and former.is_pending
        if plan.verdict.is_refused or (is_pending and self.past not in (None, "backfill")):
            return self._renew_checkpoint(plan.query)
        if is_pending:
            return self._finish_past(plan.query)
        if plan.verdict is RestartVerdict.REPARTITION:
            return self._repartition(plan.query)
        return False

    def _renew_checkpoint(self, query: str) -> bool:
        from millstream.backfill.fresh_start import renew_checkpoint

        past = self._choose_past(query)
        if past is None:
            return False
        backup = renew_checkpoint(
            self.spark, self.pipeline, self.planned[query], self.frames[query], past, self.steps.show
        )
        self.steps.clear()
        click.echo(
            f"{query}: has a new checkpoint ({past}); the former one is {_name(self.pipeline, backup)}"
        )
        return True

    def _choose_past(self, query: str) -> PastChoice | None:
        """Return what happens to the rows in the sinks, or None to leave the query as it is."""
        from millstream.backfill.fresh_start import PastChoice, find_conflict

        conflicts = {past: find_conflict(self.pipeline, query, past) for past in PastChoice}
        if self.past is not None:
            if conflict := conflicts[PastChoice(self.past)]:
                raise InvalidInput(
                    f"query '{query}' cannot begin with a new checkpoint and '--past {self.past}': {conflict}",
                    "choose another value, or give the query another target and another checkpoint folder",
                )
            chosen = PastChoice(self.past)
            sentence = f"{query}: begin with a new checkpoint, and with the past: {_WORDS[chosen]}?"
            return chosen if self.yes or confirm(sentence) else None
        if self.yes:
            raise InvalidInput(
                f"query '{query}' needs a new checkpoint, and --yes does not say what happens to its rows",
                f"add --past {', --past '.join(past for past, conflict in conflicts.items() if not conflict)}",
            )
        click.echo(f"{query}: begins with a new checkpoint; the former one is kept. The past:", err=True)
        for past, conflict in conflicts.items():
            click.echo(f"  {past}: {f'not possible: {conflict}' if conflict else _WORDS[past]}", err=True)
        possible = [past.value for past, conflict in conflicts.items() if not conflict]
        with require_answer("add --past and --yes"):
            choice = click.prompt("choose", type=click.Choice([*possible, _SKIP]), default=_SKIP, err=True)
        return None if choice == _SKIP else PastChoice(choice)

    def _finish_past(self, query: str) -> bool:
        from millstream.backfill.fresh_start import finish_past

        question = (
            f"{query}: begins with a new checkpoint; replace the rows in its sinks, as was interrupted?"
        )
        if not (self.yes or confirm(question)):
            return False
        finish_past(self.spark, self.pipeline, self.planned[query], self.steps.show)
        self.steps.clear()
        click.echo(f"{query}: the rows in its sinks are replaced")
        return True

    def _repartition(self, query: str) -> bool:
        from millstream.engine.checkpoint_changes.state_repartition import (
            find_repartition_conflict,
            repartition,
        )

        folder = self.pipeline.checkpoint_folder(query)
        partitions = int(self.spark.conf.get(_PARTITIONS) or 0)
        if conflict := find_repartition_conflict(folder):
            click.echo(f"{query}: its state cannot be repartitioned: {conflict}; it continues as it is")
            return False
        question = f"{query}: repartition its state to {partitions} partitions?"
        if not (self.yes or confirm(question)):
            return False
        backup: Path = repartition(self.spark, self.pipeline, query, partitions)
        former = _name(self.pipeline, backup)
        click.echo(f"{query}: its state has {partitions} partitions; the former checkpoint is {former}")
        return True


_WORDS = {
    "backfill": "replace the rows in the sinks with the result over everything that was read",
    "continue": "keep the rows in the sinks, and read on after the last batch, without the state",
    "now": "keep the rows in the sinks, and skip what has not been read yet",
}
