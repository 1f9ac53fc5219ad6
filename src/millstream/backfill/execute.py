"""Run a backfill: compare each sink with the batch result of its query, and write the missing rows once."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from millstream.backfill import event_time, inputs, session_windows
from millstream.backfill.failure import explain_failure
from millstream.backfill.report import BackfillReport, SinkOutcome
from millstream.backfill.sink_write import open_backfill_write
from millstream.backfill.targets import list_other_writers, requires_stopped_query, select_targets
from millstream.checkpoint.folder import Checkpoint
from millstream.checkpoint.lock import CheckpointLock
from millstream.connectors.api.ddl import quote_name
from millstream.connectors.api.values.event_time_range import EventTimeRange
from millstream.diagnostics.failure import CheckpointError, InvalidInput, MillstreamError
from millstream.engine.batch.batch_run import compute_batch_results
from millstream.engine.batch.table_diff import DIFFERENT, KEPT, MISSING, SURPLUS, find_differences
from millstream.engine.delivery.undelivered import check_backfill, describe_batches, list_undelivered

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from millstream.analysis.query.plan_model import PlannedQuery
    from millstream.backfill.options import BackfillOptions
    from millstream.backfill.targets import BackfillTarget
    from millstream.engine.batch.table_diff import Differences
    from millstream.pipeline.model import Pipeline

# Number of rows of a result from which on it cannot be chance that a sink with as many rows has none of them.
_TELLING = 5


def backfill(
    spark: SparkSession,
    pipeline: Pipeline,
    planned: Sequence[PlannedQuery],
    queries: Sequence[str],
    options: BackfillOptions,
    say: Callable[[str], None],
) -> BackfillReport:
    """Compare the sinks of these queries and write them unless the options forbid it. `planned` are their plans.

    Writes no checkpoint. Before anything is written, raises `InvalidInput` if the range cannot be determined or a
    sink cannot be written, and `CheckpointError` if rows would be written twice. Also raises `CheckpointError` if a
    query is running or has not committed its last batch, and its newest rows might be deleted or replaced.
    """
    plans = {item.name: item for item in planned}
    report = BackfillReport(pipeline.name)
    runs = [_QueryBackfill(spark, pipeline, plans[query], options, report, say) for query in queries]
    for run in runs:
        run.prepare()
    if not any(run.targets for run in runs):
        raise InvalidInput("no sink is left: " + "; ".join(report.notes), "choose other queries")
    for run in runs:
        try:
            run.run()
        except MillstreamError:
            raise
        except Exception as error:
            # Spark, a connector or a user's function may raise anything; the sentence says which query it was.
            raise explain_failure(run.query, error, "fix the error and run the backfill again") from error
    if not any(item.is_compared for item in report.outcomes):
        raise InvalidInput("nothing can be compared: " + "; ".join(report.notes), "choose other queries")
    return report


def require_possible(
    spark: SparkSession, pipeline: Pipeline, planned: PlannedQuery, options: BackfillOptions
) -> None:
    """Raise the exceptions of `backfill` that are known before anything is computed."""
    _QueryBackfill(spark, pipeline, planned, options, BackfillReport(pipeline.name), lambda _: None).prepare()


class _QueryBackfill:
    """The backfill of one query."""

    def __init__(
        self,
        spark: SparkSession,
        pipeline: Pipeline,
        plan: PlannedQuery,
        options: BackfillOptions,
        report: BackfillReport,
        say: Callable[[str], None],
    ) -> None:
        self.spark, self.pipeline, self.plan, self.options = spark, pipeline, plan, options
        self.report, self.say = report, say
        self.query = plan.name
        self.part = inputs.reduce_to_query(pipeline, self.query)
        self.targets: list[BackfillTarget] = []

    def prepare(self) -> None:
        """Determine the range and the sinks. Raises `InvalidInput` if the backfill is impossible."""
        inputs.require_rereadable(self.part)
        self.time_range = event_time.select_time_range(self.pipeline, self.plan, self.options)
        self.targets = list(
            select_targets(self.pipeline, self.query, self.options, self.time_range, self.report.notes)
        )
        for target in self.targets:
            event_time.nondeterministic_columns(self.plan, target.row_key)
        session_windows.require_closed_sessions(self.pipeline, self.plan, self.targets, self.options)
        self._check_progress()

    def run(self) -> None:
        """Compute the batch result and process each sink."""
        if self.targets:
            with self._checkpoint_lock():
                self._compute()

    @contextmanager
    def _checkpoint_lock(self) -> Iterator[None]:
        """Lock the checkpoint while rows are deleted or replaced that the query may be writing at the same time.

        Raises `CheckpointError` if a run has the checkpoint, or if a batch of the query is not committed.
        """
        folder = self.pipeline.checkpoint_folder(self.query)
        if not requires_stopped_query(self.plan, self.targets, self.options) or not folder.is_dir():
            yield
            return
        with CheckpointLock(folder, f"{self.pipeline.name}.{self.query} backfill"):
            # Checked under the lock: a run that was killed just before may have left an uncommitted batch.
            checkpoint = Checkpoint(folder)
            if checkpoint.planned() != checkpoint.committed():
                raise CheckpointError(
                    f"query '{self.query}' has started a batch and not committed it, and the backfill would "
                    "delete rows of that batch or replace them by older ones",
                    "let the query finish the batch first: millstream run --until-caught-up",
                )
            yield

    def _check_progress(self) -> inputs.QueryProgress:
        """Return the query's progress.

        Raises `CheckpointError` if the query or a spooled batch would write rows again. The order matters: first
        the checkpoint is read, then spooled batches are listed, then the sinks are read. A
        batch is spooled before it is committed, so no row of the batch result can arrive later; a batch that was
        delivered in between is found in the sink.
        """
        progress = inputs.read_progress(self.pipeline, self.query)
        own_targets = [target for target in self.targets if not target.side]
        if self.options.past is not None:
            # A source that the former query did not read has given it no rows.
            ends = progress.ends or {}
            progress = replace(progress, ends={name: ends.get(name) for name in self.part.sources})
        if not self.options.compare and any(not target.row_key for target in own_targets):
            inputs.check_bounded(self.part, self.query, progress)
        for target in own_targets:
            if not self.options.compare:
                check_backfill(self.pipeline, self.query, target.key)
            elif batches := list_undelivered(self.pipeline, self.query, target.key):
                self.report.notes.append(
                    f"{describe_batches(batches)}: their rows are missing there until they are "
                    "delivered with 'millstream "
                    f"deadletter replay {self.query}'"
                )
        return progress

    def _compute(self) -> None:
        progress = self._check_progress()
        keyless = any(not (target.side or target.row_key) for target in self.targets)
        raw = inputs.bounded_reader(
            self.spark, self.part, progress, bounded=keyless and not self.options.compare
        )
        if not self.options.accept_gap:
            inputs.require_complete_input(
                self.part, self.query, self.time_range, event_time.input_time_reach(self.plan), raw
            )
        time_range, closed = self._select_final(progress)
        if self.options.is_dry_run:
            static = {
                name: entry.model_copy(update={"static": True}) for name, entry in self.part.sources.items()
            }
            self.report.rows_read[self.query] = {
                name: raw(name, entry).count() for name, entry in static.items()
            }
        self.say(f"{self.query}: computing the batch result")
        try:
            rows = compute_batch_results(self.spark, self.part, raw)[self.query]
            if session_windows.has_sessions(self.plan):
                # Unless they are cached, Spark applies a condition on sessions to their rows, before it merges them.
                rows = rows.persist(KEPT)
            result = rows.where(self._final_rows(time_range)).where(closed).persist(KEPT)
        except AnalysisException as error:
            message = str(error).strip().split("\n")[0]
            raise MillstreamError(
                f"query '{self.query}' cannot be computed as a batch: {message}",
                "operations that Spark supports only on streams have no batch result; choose other queries",
            ) from error
        try:
            for target in self.targets:
                sink_result = target.sink.outcome(rows)
                final_rows = (
                    result
                    if sink_result is None
                    else sink_result.where(self._final_rows(time_range)).where(closed)
                )
                self._process_sink(target, final_rows, time_range, closed)
        finally:
            result.unpersist()
            rows.unpersist()

    def _select_final(self, progress: inputs.QueryProgress) -> tuple[EventTimeRange, str]:
        """Return the rows that the query itself does not have to write any more: their range, and a condition."""
        if self.options.past is not None:
            return self.time_range, "true"
        until = event_time.find_write_frontier(self.plan, progress.watermark, self.options)
        ends = session_windows.find_window_ends(self.pipeline, self.plan)
        if until is not None and ends and session_windows.has_sessions(self.plan):
            assert progress.watermark is not None, "there would be no frontier"
            self.report.notes.append(
                f"{self.query}: sessions that end after {progress.watermark.isoformat(' ', 'seconds')} are left out, "
                "because the query itself has yet to write or rewrite them"
            )
            return self.time_range, session_windows.closed_windows(ends, progress.watermark)
        if until is None or (self.time_range.end is not None and self.time_range.end <= until):
            return self.time_range, "true"
        time_range = self.time_range
        if not time_range.path:
            time_range = EventTimeRange(
                event_time.find_event_time_column(self.pipeline, self.plan, self.options.column)[1]
            )
        if time_range.start is not None and time_range.start >= until:
            raise InvalidInput(
                f"query '{self.query}' has not reached the end of this range, and will write its rows itself: it "
                f"has written rows up to "
                f"{until.isoformat(' ', 'seconds')}",
                "choose a range that ends earlier, or write to another table with --into",
            )
        self.report.notes.append(
            f"{self.query}: rows from {until.isoformat(' ', 'seconds')} on are left out, because the query itself "
            "has yet to write or rewrite them"
        )
        return time_range.before(until), "true"

    def _final_rows(self, time_range: EventTimeRange) -> str:
        """Return the condition for the rows that the query will not write itself, in Spark SQL."""
        past = self.options.past
        if past is None:
            return time_range.sql()
        if past.is_empty:
            return "false"
        if past.watermark is None:
            return "true"
        path = event_time.find_event_time_column(self.pipeline, self.plan)[1]
        # Spark closes a window once the watermark reaches its end. Watermarks are in milliseconds.
        last = past.watermark - event_time.input_time_reach(self.plan)
        return EventTimeRange(path, None, last + timedelta(milliseconds=1)).sql()

    def _process_sink(
        self, target: BackfillTarget, result: DataFrame, time_range: EventTimeRange, closed: str
    ) -> None:
        """Compare the rows of one sink in the range for which `closed` is true, and write its missing rows."""
        names = target.sink.takes(result.columns)
        not_compared = [
            name for name in event_time.nondeterministic_columns(self.plan, target.row_key) if name in names
        ]
        if not_compared:
            self.report.notes.append(
                f"{self.query}: {', '.join(not_compared)} is not compared, because its values differ in each run"
            )
        expected = result.select(*(f"`{name}`" for name in names))
        schema = StructType([expected.schema[name] for name in names])
        outcome = SinkOutcome(self.query, target.key, time_range)
        self.report.outcomes.append(outcome)
        with ExitStack() as stack:
            # Opened before the table is read, because opening completes the commit of a backfill that was killed.
            write_rows = None
            if self.options.writes:
                instead = time_range if self.options.replace else None
                write_rows = open_backfill_write(self.spark, self.pipeline, target, schema, instead)
            self.say(f"{self.query}: comparing {target.sink.describe()}")
            rows = target.sink.read_time_range(self.spark, schema, target.mode, time_range)
            if rows is None:
                outcome.is_compared = False
                self.report.notes.append(
                    f"{self.query}: the rows of {target.sink.describe()} cannot be compared"
                )
                return
            by_lower = {name.lower(): name for name in names}
            key = [by_lower.get(name.lower(), name) for name in target.row_key]
            stored = target.sink.stored_values(schema)
            _require_stored_times(target, expected, time_range, stored)
            actual = _as_schema(rows, schema).where(time_range.sql()).where(closed)
            comparison = find_differences(actual, expected, key, not_compared, stored)
            stack.callback(comparison.forget)
            self._record_counts(outcome, comparison)
            self._require_known_rows(target, outcome)
            if write_rows and (outcome.added or outcome.changed or outcome.deleted):
                self.say(f"{self.query}: writing {target.sink.describe()}")
                write_rows(comparison.expected if self.options.replace else comparison.absent())

    def _require_known_rows(self, target: BackfillTarget, outcome: SinkOutcome) -> None:
        """Raise `InvalidInput` if a sink without a key has about as many rows as the result, but not one of its rows.

        They are rows of another version of the query, or are not read as they were written; in the second case, each
        backfill would add all rows again.
        """
        if target.row_key or self.options.compare or self.options.replace:
            return
        if outcome.missing < outcome.expected or outcome.expected < _TELLING:
            return
        # A few rows may come from a query that is running, or from a person, in a table that has lost all others.
        if outcome.stored * 2 < outcome.expected:
            return
        if list_other_writers(self.pipeline, self.query, target.sink):
            # They may be rows of the other query.
            return
        raise InvalidInput(
            f"query '{self.query}': none of the {outcome.stored} rows of {target.sink.describe()} is in the result, "
            f"so all {outcome.missing} rows of the result would be added to them",
            "see what differs with --compare; then replace the rows with --replace, or write to another target "
            "with --into",
        )

    def _record_counts(self, outcome: SinkOutcome, comparison: Differences) -> None:
        """Copy the counts of the comparison and of the rows to write into the outcome."""
        outcome.expected, outcome.stored = comparison.expected.count(), comparison.actual.count()
        outcome.missing, outcome.surplus = comparison.counts[MISSING], comparison.counts[SURPLUS]
        outcome.different = comparison.counts[DIFFERENT]
        if self.options.compare:
            outcome.differences = comparison.rows(self.options.limit)
            return
        outcome.added, outcome.changed = outcome.missing, outcome.different
        outcome.deleted = outcome.surplus if self.options.replace else 0


def _require_stored_times(
    target: BackfillTarget, expected: DataFrame, time_range: EventTimeRange, stored: Mapping[str, str]
) -> None:
    """Raise `InvalidInput` if the sink stores a row of the range with a time outside of it."""
    name = time_range.path[0] if time_range.path else ""
    if name not in stored:
        return
    times = expected.select(F.expr(stored[name]).cast(expected.schema[name].dataType).alias(name))
    if not times.where(f"NOT coalesce({time_range.sql()}, false)").isEmpty():
        raise InvalidInput(
            f"query '{target.query}': {target.sink.describe()} stores column '{name}' with less precision than this "
            f"range needs",
            "choose a range whose ends the sink can store, or leave out --from and --to",
        )


def _as_schema(rows: DataFrame, schema: StructType) -> DataFrame:
    """Cast the rows to the names and types of `schema`, by position."""
    columns = [
        F.col(quote_name(name)).cast(field.dataType).alias(field.name)
        for name, field in zip(rows.columns, schema.fields, strict=True)
    ]
    return rows.select(*columns)
