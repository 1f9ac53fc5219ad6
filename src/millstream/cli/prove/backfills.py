"""Backfill during a proof: delete rows of past ranges from the sinks, and restore them by a backfill."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING

import click

from millstream.diagnostics.failure import InvalidInput, MillstreamError

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession

    from millstream.analysis.query.plan_model import PlannedQuery
    from millstream.backfill.options import BackfillOptions
    from millstream.backfill.targets import BackfillTarget
    from millstream.connectors.api.values.event_time_range import EventTimeRange
    from millstream.pipeline.model import Pipeline

# Seconds between two rounds, because the drivers that are killed need the cores too.
PAUSE = 5.0
# Maximum length of a range, in seconds of event time.
LONGEST = 300.0
# Attempts at one backfill, because its Delta commit may conflict with the stream's more than once.
FAILURES = 5


@dataclass
class Backfills:
    """Deletes and backfills ranges of a pipeline's sinks in rounds. `planned` are the plans of its queries."""

    spark: SparkSession
    pipeline: Pipeline
    planned: Sequence[PlannedQuery]
    chance: random.Random = field(default_factory=random.Random)

    def run(self, ended: threading.Event) -> None:
        """Repeat rounds until `ended` is set, then run one more. Raises the last error after `FAILURES` attempts."""
        last = False
        while not last:
            last = ended.wait(PAUSE)
            for plan in self.planned:
                for options in self._choose_backfills(plan):
                    self._delete_and_fill(plan, options)

    def _delete_and_fill(self, plan: PlannedQuery, options: BackfillOptions) -> None:
        """Delete a range and fill it in; retry on conflicts with other writers, so that no row stays missing."""
        deleted = False
        for attempt in range(1, FAILURES + 1):
            try:
                if not deleted:
                    self._delete(plan, options)
                    deleted = True
                self._fill(plan, options)
            except InvalidInput:
                # A sink that does not support backfills is refused before anything is deleted.
                if deleted:
                    raise
                return
            except MillstreamError:
                if attempt == FAILURES:
                    raise
            else:
                return

    def _choose_backfills(self, plan: PlannedQuery) -> Iterator[BackfillOptions]:
        """Yield a backfill of some minutes for each kind of sink, once the query has final rows."""
        from millstream.backfill.event_time import input_time_reach
        from millstream.backfill.inputs import read_progress
        from millstream.backfill.options import BackfillOptions
        from millstream.proof.rows import BEGIN

        for kind in dict.fromkeys(entry.sink.kind for entry in self.pipeline.queries[plan.name].to):
            watermark = read_progress(self.pipeline, plan.name).watermark
            # The rows of a window are final when the watermark has passed its end.
            final_seconds = (
                0.0 if watermark is None else (watermark - input_time_reach(plan) - BEGIN).total_seconds()
            )
            if final_seconds > 0:
                first = self.chance.random() * final_seconds
                last = min(final_seconds, first + LONGEST)
                yield BackfillOptions(
                    start=BEGIN + timedelta(seconds=first), end=BEGIN + timedelta(seconds=last), sink=kind
                )

    def _delete(self, plan: PlannedQuery, options: BackfillOptions) -> None:
        """Delete the range from sinks that support it.

        Raises `InvalidInput` if a backfill may not write to a sink while the query is running.
        """
        from millstream.backfill.event_time import select_time_range
        from millstream.backfill.execute import require_possible
        from millstream.backfill.targets import requires_stopped_query, select_targets

        require_possible(self.spark, self.pipeline, plan, options)
        time_range = select_time_range(self.pipeline, plan, options)
        targets = select_targets(self.pipeline, plan.name, options, time_range, [])
        if requires_stopped_query(plan, targets, options):
            raise InvalidInput(
                f"query '{plan.name}' is running, and a backfill may replace its newest rows", "leave it out"
            )
        for target in targets:
            if target.sink.replacing_range(time_range) is not None:
                require_possible(self.spark, self.pipeline, plan, replace(options, replace=True))
                self._empty(target, time_range)

    def _empty(self, target: BackfillTarget, time_range: EventTimeRange) -> None:
        """Replace a range with no rows."""
        from pyspark.sql.types import StructType

        from millstream.backfill.inputs import reduce_to_query
        from millstream.backfill.sink_write import open_backfill_write
        from millstream.engine.batch.batch_run import compute_batch_results

        result = compute_batch_results(self.spark, reduce_to_query(self.pipeline, target.query))[target.query]
        schema = StructType([result.schema[name] for name in target.sink.takes(result.columns)])
        write_rows = open_backfill_write(self.spark, self.pipeline, target, schema, time_range)
        write_rows(self.spark.createDataFrame([], schema))

    def _fill(self, plan: PlannedQuery, options: BackfillOptions) -> None:
        """Run one backfill as a user would, and print the number of rows it added."""
        from millstream.backfill.execute import backfill

        report = backfill(self.spark, self.pipeline, self.planned, [plan.name], options, lambda _: None)
        for outcome in report.outcomes:
            event = {
                "event": "backfilled",
                "query": outcome.query,
                "sink": outcome.sink,
                "added": outcome.added,
            }
            click.echo(json.dumps(event | {"changed": outcome.changed}))
