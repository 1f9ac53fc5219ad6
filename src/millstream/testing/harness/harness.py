"""The test harness of one case: its session, sources and query, and the results of its steps."""

from __future__ import annotations

import secrets
import time
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Self

from pyspark.errors import PySparkException

from millstream.checkpoint.folder import Checkpoint
from millstream.checkpoint.remote.path import require_local
from millstream.diagnostics.failure import InvalidInput, MillstreamError
from millstream.engine.events.event_bus import EventBus
from millstream.engine.failure_classifier import FailureKind, classify
from millstream.spec.trigger import Trigger
from millstream.testing.harness.collecting_sink import CollectedRows
from millstream.testing.harness.dead_letters import DeadLetterReader
from millstream.testing.harness.isolation import IsolatedCopy, isolate_pipeline
from millstream.testing.harness.manual_clock import LIMIT, ManualClockQuery, count_state_rows
from millstream.testing.harness.memory_streams import MemoryStreams, reduce_pipeline
from millstream.testing.harness.query_start import OUTPUT, PlannedCrash, TestedQuery
from millstream.testing.harness.session import apply_later_settings, open_case_session
from millstream.testing.harness.sink_reader import SinkReader
from millstream.testing.harness.source_encoder import Feeder
from millstream.testing.harness.view_probe import ViewOutputs
from millstream.testing.model import Step, StepResult

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.engine.failure_classifier import QueryFailure
    from millstream.pipeline.model import Pipeline
    from millstream.testing.harness.manual_clock import Progress
    from millstream.testing.model import Case, Fed, Row

# The clock time for cases that set none, fixed so that results do not depend on the date of the run.
_DEFAULT_NOW = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class Harness:
    """Runs one case, one call at a time; a context manager.

    `folder` is used by this case alone, for its checkpoint, dead letters and files. `watched` are views and sources
    whose rows are collected in addition to those in the case's expectations; names cannot be added after the first
    feed. If the query fails, its error is in `StepResult.error`. An action that cannot run raises `MillstreamError`.
    """

    spark: SparkSession
    case: Case
    folder: Path
    watched: Collection[str] = ()
    limit: float = LIMIT

    def __enter__(self) -> Self:
        self._resources = ExitStack()
        try:
            self._open()
        except BaseException:
            self._resources.close()
            raise
        return self

    def _open(self) -> None:
        self.session = self._resources.enter_context(open_case_session(self.spark, self.case.pipeline))
        self._resources.callback(lambda: self._sink_reader.discard())
        self._resources.callback(self._stop_all)
        self._events = EventBus()
        self._resources.callback(self._events.close)
        self._prefix = f"case_{secrets.token_hex(4)}"
        self._streams = MemoryStreams(self.session)
        self._tested_pipeline: Pipeline | None = None
        self._sink_reader = SinkReader(self.session, self.case.pipeline.queries[self.case.query].output_mode)
        self._prepare()

    def _prepare(self) -> None:
        """Set up the state before the first step."""
        case = self.case
        now = case.now or _DEFAULT_NOW
        self._feeders: dict[str, Feeder] = {}
        self._manual_query = ManualClockQuery(self.session, case.query, _to_millis(now), self.limit)
        self._planned_crash = PlannedCrash()
        self._query: TestedQuery | None = None
        self._frame: Any = None
        self._error: QueryFailure | None = None
        self._unread_reports: list[Progress] = []
        self._state: dict[str, int] = {}
        self._watermark_millis: int = 0
        self._pending = False
        self._step_started = time.perf_counter()
        self._use_pipeline(case.pipeline)
        mode = self._isolated.pipeline.queries[case.query].output_mode
        self._collected = {key: CollectedRows(mode) for key in (OUTPUT, *self._isolated.collecting_keys)}
        self._dead_letter_reader = DeadLetterReader(self._isolated.pipeline)
        names = [name for step in case.steps for name in step.expected.rows]
        self._collected_names = list(dict.fromkeys([*names, *self.watched]))
        self._view_outputs = ViewOutputs(self._collected_names, case, self.folder, self._manual_query)

    def __exit__(self, *_: object) -> None:
        self._resources.close()

    def can_reuse(self, case: Case) -> bool:
        """Return whether that case can run here too, with the existing sources and views."""
        current = self.case
        is_same_query = (case.query, case.has_real_sinks, case.now) == (
            current.query,
            current.has_real_sinks,
            current.now,
        )
        return (
            is_same_query
            and case.static == current.static
            and case.pipeline is current.pipeline is self._current_pipeline
        )

    def stop(self) -> None:
        """Stop the query, as after the last step. The harness can be reused."""
        self._stop_all()

    def reuse_for(self, case: Case, folder: Path) -> None:
        """Run a case for which `can_reuse` is true from its beginning, in another folder.

        Session, sources and views are reused; fed rows, state and checkpoint are not.
        """
        self.stop()
        self._streams.reset()
        self.case, self.folder = case, folder
        frame, tested_pipeline = self._frame, self._tested_pipeline
        self._prepare()
        if frame is not None and tested_pipeline is not None:
            self._frame = frame
            self._tested_pipeline = reduce_pipeline(self._isolated.pipeline, self._written_name).model_copy(
                update={"sources": tested_pipeline.sources}
            )

    def feed(self, rows: Mapping[str, Sequence[Fed]], crash: str | None = None) -> None:
        """Feed these rows to all sources at once, and run the batch that reads them.

        With `crash`, the query crashes in that batch at that point (`before_sink`, `after_sink`, a sink's name) and
        starts again, and Spark repeats the batch. If the watermark advances, the no-data batch after it runs too.
        """
        crash_point = self._resolve_crash_point(crash) if crash else None
        pipeline = self._isolated.pipeline
        encoded = {name: self._encode_feed(name, items, pipeline) for name, items in rows.items()}
        self._streams.add(encoded)
        self._view_outputs.add(encoded)
        self._planned_crash.at, self._planned_crash.has_happened = crash_point, False
        self._run_batch()
        if crash_point is not None and not self._planned_crash.has_happened and self._error is None:
            raise InvalidInput(
                f"the query cannot crash at {crash}, because no batch has run",
                "feed rows that the query reads",
            )
        self._view_outputs.batch(has_failed=self._error is not None)

    def crash(self, at: str) -> None:
        """Crash the query in the newest batch at that point, as if Spark had not committed it, and repeat the batch.

        Sinks keep what they have of the batch, as after a crash between a sink's write and Spark's commit.
        """
        point = self._resolve_crash_point(at)
        self._ensure_started()
        self._stop_query()
        checkpoint = Checkpoint(self._checkpoint)
        last = checkpoint.committed()
        if last is None:
            raise InvalidInput(
                "the step crashes the query before any batch that could be repeated",
                "feed something before the crash",
            )
        for file in (self._checkpoint / "commits").glob(f"*{last}*"):
            if file.name in (str(last), f".{last}.crc"):
                file.unlink()
        self._planned_crash.at, self._planned_crash.has_happened = point, False
        self._run_batch()
        self._planned_crash.at = None

    def restart(self, pipeline: Pipeline | None = None) -> None:
        """Stop the query between two batches and start it again, with another pipeline if one is given."""
        if pipeline is not None:
            self._ensure_started()
        self._stop_query()
        self._error = None
        if pipeline is not None:
            apply_later_settings(self.session, self._isolated.pipeline, pipeline)
            self._use_pipeline(pipeline)
            for key in self._isolated.collecting_keys:
                self._collected.setdefault(key, CollectedRows(pipeline.queries[self.case.query].output_mode))
            self._view_outputs.restart(pipeline)
        self._pending = True

    def advance(self, by: timedelta) -> None:
        """Advance the clock. The next batch runs at the new time, and timeouts that are due fire in it."""
        millis = round(by / timedelta(milliseconds=1))
        self._manual_query.now += millis
        self._view_outputs.advance(millis)
        self._pending = True

    def run_step(self, step: Step) -> StepResult:
        """Return the result since the last call, after running pending work such as a start."""
        if self._pending:
            self._run_batch()
            self._view_outputs.batch(has_failed=self._error is not None)
        self._pending = False
        reports, self._unread_reports = self._unread_reports, []
        rows = {name: self._take_rows(name) for name in self._list_names(step)}
        for key in self._isolated.collecting_keys:
            self._collected[key].take()  # so that the next step has only its own
        operators = [operator for report in reports for operator in report.report["stateOperators"]]
        if reports:
            self._state = count_state_rows(reports[-1].report["stateOperators"])
        started, self._step_started = self._step_started, time.perf_counter()
        error, self._error = self._error, None
        return StepResult(
            step=step,
            batches=tuple(dict.fromkeys(report.batch for report in reports)),
            watermark=datetime.fromtimestamp(self._watermark_millis / 1000, UTC)
            if self._watermark_millis
            else None,
            rows=rows,
            dropped=sum(operator.get("numRowsDroppedByWatermark", 0) for operator in operators),
            state=dict(self._state),
            letters=self._dead_letter_reader.take(),
            error=None if error is None else error.message,
            is_external_failure=error is not None and error.cause in (FailureKind.OUTAGE, FailureKind.CRASH),
            seconds=self._step_started - started,
        )

    def _use_pipeline(self, pipeline: Pipeline) -> None:
        """Use that pipeline from the next start."""
        self._isolated: IsolatedCopy = isolate_pipeline(
            pipeline, self.case.query, self.folder, self._prefix, real=self.case.has_real_sinks
        )
        for key, sink in self._isolated.real():
            self._sink_reader.register(key, sink)
            sink.prepare()
        self._current_pipeline = pipeline
        self._frame = None
        self._tested_pipeline = None

    @property
    def _written_name(self) -> str:
        return self._isolated.pipeline.reads(self.case.query)

    @property
    def _checkpoint(self) -> Path:
        return require_local(self._isolated.pipeline.checkpoint_folder(self.case.query), "a test")

    def _encode_feed(self, name: str, records: Sequence[Fed], pipeline: Pipeline) -> list[str]:
        entry = pipeline.sources.get(name)
        if entry is None or entry.static:
            streams = [key for key, source in pipeline.sources.items() if not source.static]
            raise InvalidInput(f"'{name}' is not a streaming source", f"choose among {', '.join(streams)}")
        feeder = self._feeders.setdefault(name, Feeder(name))
        now = datetime.fromtimestamp(self._manual_query.now / 1000, UTC)
        return feeder.raw(entry, records, now, pipeline.session_zone)

    def _resolve_crash_point(self, at: str) -> str:
        if at in ("before_sink", "after_sink"):
            return at
        key = self._isolated.key(at)
        if key is None:
            raise InvalidInput(
                f"query '{self.case.query}' has no sink '{at}' at which it could crash",
                f"choose among before_sink, after_sink, {', '.join(self._isolated.keys)}",
            )
        return key

    def _ensure_started(self) -> None:
        """Start the query if it is not running. A failed start sets the step's error."""
        if not self._manual_query.is_alive:
            self._start_query()

    def _run_batch(self) -> None:
        """Run one batch of the query. After a planned crash, restart the query, which repeats the batch."""
        self._pending = False
        self._trigger_or_start()
        if self._planned_crash.has_happened and not self._manual_query.is_alive:
            self._planned_crash.has_happened = False
            self._error = None
            self._trigger_or_start()
            self._planned_crash.has_happened = True
        if self._manual_query.is_alive:
            self._unread_reports += self._manual_query.follow(
                self._unread_reports[-1] if self._unread_reports else None
            )
            self._read_progress()

    def _trigger_or_start(self) -> None:
        if self._manual_query.is_alive:
            self._manual_query.trigger()
            self._read_progress()
        else:
            self._start_query()

    def _start_query(self) -> None:
        """Start the query, whose first trigger reads all available input. A failed start sets the step's error."""
        self._stop_query()
        case = self.case
        try:
            if self._frame is None:
                now = datetime.fromtimestamp(self._manual_query.now / 1000, UTC)
                written_name = self._isolated.pipeline.reads(case.query)
                needed = reduce_pipeline(self._isolated.pipeline, written_name)
                self._tested_pipeline, frames = self._streams.frames(needed, case.static, now)
                self._frame = frames[written_name]
            assert self._tested_pipeline is not None
            self._query = TestedQuery(
                spark=self.session,
                pipeline=self._tested_pipeline,
                name=case.query,
                frame=self._frame,
                trigger=Trigger(),
                events=self._events,
                manual_query=self._manual_query,
                collected=self._collected,
                planned_crash=self._planned_crash,
            )
            self._query.start()
        except (MillstreamError, PySparkException) as error:
            self._error = classify(None, error)
            self._stop_query()
            return
        self._manual_query.settle()
        self._read_progress()

    def _read_progress(self) -> None:
        """Read the query's progress reports, its watermark or its error."""
        self._unread_reports += self._manual_query.reports()
        if self._manual_query.is_alive:
            self._watermark_millis = self._manual_query.watermark()
        elif self._query is not None:
            raised = self._query.delivery.failure if self._query.delivery else None
            self._error = classify(self._manual_query.error, raised)

    def _stop_query(self) -> None:
        """Stop the query if it runs."""
        self._manual_query.stop()
        if self._query is not None:
            self._query.close()
            self._query = None

    def _list_names(self, step: Step) -> dict[str, None]:
        """Return the names whose rows are in a result: the others of its expectations are read anyway."""
        keys, names = self._isolated.collecting_keys, step.expected.rows
        others = (name for name in names if name == self._written_name or self._isolated.key(name) in keys)
        # Only some versions of the pipeline may have a name that another step expects.
        required = {*names, *self.watched}
        known = (name for name in self._collected_names if name in required or self._has_rows(name))
        return dict.fromkeys([OUTPUT, *known, *others])

    def _has_rows(self, name: str) -> bool:
        """Return whether the current version of the pipeline has a view, source or sink of that name."""
        is_sink = self._isolated.key(name) is not None
        return name == self._written_name or name in self._view_outputs or is_sink

    def _take_rows(self, name: str) -> tuple[Row, ...]:
        """Return the rows of this step for that name."""
        if name == OUTPUT:
            self._output = self._collected[OUTPUT].take()
            return self._output
        if name == self._written_name:
            return self._output
        if name in self._view_outputs:
            return self._view_outputs.take(name)
        key = self._isolated.key(name)
        if key is None:
            raise InvalidInput(
                f"'{name}' is not a source, view or sink of query '{self.case.query}'",
                f"choose among {', '.join([*self.case.pipeline.sources, *self.case.pipeline.views])}, "
                f"{', '.join(self._isolated.keys)}",
            )
        if key in self._collected:
            return self._collected[key].take()
        # A query that has not started has written nothing.
        sink = dict(self._isolated.real())[key]
        return () if self._frame is None else self._sink_reader.take(key, sink, self._frame.schema)

    def _stop_all(self) -> None:
        if hasattr(self, "_view_outputs"):
            self._view_outputs.stop()
        self._stop_query()


def _to_millis(at: datetime) -> int:
    """Convert a datetime to milliseconds since 1970, in UTC if it has no time zone."""
    aware = at if at.tzinfo else at.replace(tzinfo=UTC)
    return round(aware.timestamp() * 1000)
