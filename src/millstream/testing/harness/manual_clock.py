"""Drive one streaming query by a manual clock, so that it runs a batch only when the test triggers one."""

from __future__ import annotations

import contextlib
import json
import time
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql.streaming.query import StreamingQuery

from millstream.diagnostics.failure import MillstreamError
from millstream.engine.delivery.foreach_batch_callback import ForeachBatchCallback
from millstream.spark import internals

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from millstream.checkpoint.remote.path import CheckpointPath
    from millstream.spec.output_mode import OutputMode

# Seconds. A step takes about 0.1 s, and about 10 s on a loaded machine or with the first Python worker.
LIMIT = 60.0
# Seconds between two polls of a working query: a tenth of the time waited so far, at least _MIN_POLL_BEGIN while it
# begins a batch, at least _MIN_POLL_END while it ends one, at most _MAX_POLL. A poll is four Py4J calls, which delay
# the query's own Python function.
_MIN_POLL_BEGIN, _MIN_POLL_END, _MAX_POLL = 0.001, 0.004, 0.02
# Every eighth poll checks whether the query is still active.
_POLLS_PER_ALIVE_CHECK = 8
# Number of progress reports that Spark retains per query (spark.sql.streaming.numRecentProgressUpdates).
RETAINED_REPORTS = 100
# Spark's status messages of a query that waits for the clock after a trigger, and of one that has ended.
_PARKED = "Waiting for next trigger"
_ENDED = ("Stopped", "Terminated with exception")
# The shortest interval: every tick of the manual clock is a trigger.
_TICK = "1 millisecond"


@dataclass
class Progress:
    """Spark's progress report of one batch."""

    batch: int
    report: dict[str, Any]

    @property
    def used(self) -> int | None:
        """The watermark that the batch used, in milliseconds since 1970, or None for a query without one."""
        text = self.report.get("eventTime", {}).get("watermark")
        if text is None:
            return None
        return round(datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1000)


@dataclass
class ManualClockQuery:
    """A streaming query and its manual clock, across restarts.

    Spark triggers by a `ManualClock`: each tick of one millisecond is one trigger. While Spark reads the time of the
    batch, the clock shows the test's time. To ensure this, the query is blocked at its progress lock, which it needs
    before it reads the clock for the batch.
    """

    spark: SparkSession
    name: str
    now: int
    """The clock time of the test, in milliseconds since 1970."""
    limit: float = LIMIT
    handle: StreamingQuery | None = None
    error: Exception | None = None
    """The error that ended the query since its last start."""
    _clock: Any = None
    _callback: ForeachBatchCallback | None = None
    _tick: int = 0
    _last_batch: int = field(default=-1)
    _reports_read: int = 0
    """Number of reports read since the last start."""
    _execution: Any = None
    """Spark's StreamExecution, cached to save one call per poll."""
    _status_message: str = ""
    """Spark's status message at the last poll."""

    def start(
        self,
        frame: DataFrame,
        mode: OutputMode,
        deliver: Callable[[DataFrame, int], None],
        checkpoint: CheckpointPath,
    ) -> StreamingQuery:
        """Start the query. Its first trigger follows at once. Raises Spark's AnalysisException."""
        jvm: Any = internals.jvm(self.spark)
        self._clock = getattr(jvm, "org.apache.spark.util.ManualClock")(self.now)
        self._tick = self.now
        self.error = None
        self._last_batch = -1
        self._reports_read = 0
        self._status_message = ""
        none = getattr(jvm, "scala.Option").empty()
        self._callback = ForeachBatchCallback(deliver)
        writer = frame.writeStream.outputMode(mode.value).foreachBatch(self._callback)
        started = (
            internals.java_session(self.spark)
            .sessionState()
            .streamingQueryManager()
            .startQuery(
                getattr(jvm, "scala.Option").apply(self.name),
                none,
                getattr(jvm, "scala.Option").apply(str(checkpoint)),
                internals.java_frame(frame),
                getattr(jvm, "org.apache.spark.api.python.PythonUtils").toScalaMap({}),
                _foreach_batch_sink(jvm, writer, frame),
                _spark_output_mode(jvm, mode),
                False,  # noqa: FBT003 - a Java method takes no names
                True,  # noqa: FBT003 - as above
                getattr(jvm, "org.apache.spark.sql.streaming.Trigger").ProcessingTime(_TICK),
                self._clock,
                none,
                none,
            )
        )
        self.handle = StreamingQuery(started)
        self._execution = started.streamingQuery()
        return self.handle

    def trigger(self) -> None:
        """Run one trigger to its end. Afterwards the query is parked, or has failed with `error`."""
        lock = self._stream.awaitProgressLock()
        lock.lock()
        try:
            self._tick = max(self._tick, self.now) + 1
            self._clock.setTime(self._tick)
            self._wait(lambda: lock.hasQueuedThreads(), "begin a batch", _MIN_POLL_BEGIN)
            self._clock.setTime(self.now)
        finally:
            lock.unlock()
        self.settle()

    def settle(self) -> None:
        """Wait until the query is parked or has failed."""
        self._wait(self._is_parked, "end a batch", _MIN_POLL_END)

    def reports(self) -> list[Progress]:
        """Return the reports of the batches that ended since the last call, oldest first."""
        if self.handle is None:
            return []
        recent = internals.progress_reports(self.handle)
        number = len(recent)
        reports = [
            json.loads(recent[at].json())
            for at in range(self._reports_read if number < RETAINED_REPORTS else 0, number)
        ]
        self._reports_read = number
        # Spark may also report a trigger without a batch, under the id of the next batch.
        fresh = [
            report
            for report in reports
            if report["batchId"] > self._last_batch and "addBatch" in report["durationMs"]
        ]
        if fresh:
            self._last_batch = fresh[-1]["batchId"]
        return [Progress(report["batchId"], report) for report in fresh]

    def follow(self, last: Progress | None) -> list[Progress]:
        """Run the no-data batches that follow a batch that advanced the watermark, and return their reports.

        Spark evicts state and emits rows by the watermark after a batch in the next batch.
        """
        reports_of_batches: list[Progress] = []
        while self.is_alive and last is not None and last.used not in (None, self.watermark()):
            self.trigger()
            fresh = self.reports()
            reports_of_batches += fresh
            last = fresh[-1] if fresh else None
        return reports_of_batches

    def watermark(self) -> int:
        """Return the watermark of the next batch, in milliseconds since 1970; 0 if there is none yet."""
        tracker = self._stream.watermarkTracker()
        return int(tracker.currentWatermark()) if tracker is not None else 0

    def stop(self) -> None:
        """Stop the query at once. It may have ended already."""
        if self.handle is not None:
            # A thread that ignores its interruption is abandoned, because Spark gives up after `stopTimeout`.
            with contextlib.suppress(Py4JJavaError, PySparkException):
                self.handle.stop()
            self.handle = self._execution = None
        if self._callback is not None:
            self._callback.detach()

    @property
    def is_alive(self) -> bool:
        """Whether the query is running."""
        return self.handle is not None and self.error is None

    @property
    def _stream(self) -> Any:
        assert self._execution is not None
        return self._execution

    def _is_parked(self) -> bool:
        status = self._stream.status()
        self._status_message = str(status.message())
        return self._status_message == _PARKED and not status.isTriggerActive()

    def _wait(self, is_reached: Callable[[], bool], purpose: str, min_poll: float) -> None:
        """Wait until a condition holds or the query fails. Raises `MillstreamError` if neither happens in time.

        `min_poll` is the minimum number of seconds between two polls.
        """
        assert self.handle is not None
        started = time.monotonic()
        deadline = started + self.limit
        polls = 0
        while not is_reached():
            polls += 1
            check_alive = polls % _POLLS_PER_ALIVE_CHECK == 0 or self._status_message.startswith(_ENDED)
            if check_alive and not self.handle.isActive:
                self.error = self.handle.exception()
                return
            if time.monotonic() > deadline:
                status = self.handle.status["message"]
                self.stop()
                raise MillstreamError(
                    f"query '{self.name}' did not {purpose} within {self.limit:g} s; its status is: {status}",
                    "check whether a function of the pipeline does not return, or give the test more time",
                )
            time.sleep(min(max((time.monotonic() - started) / 10, min_poll), _MAX_POLL))


def _foreach_batch_sink(jvm: Any, writer: Any, frame: DataFrame) -> Any:
    """Create the foreachBatch sink that `start()` would create, which would use the system clock."""
    sink_class = getattr(jvm, "org.apache.spark.sql.execution.streaming.sources.ForeachBatchSink")
    return sink_class(internals.foreach_batch_function(writer), internals.java_frame(frame).exprEnc())


def _spark_output_mode(jvm: Any, mode: OutputMode) -> Any:
    modes = getattr(jvm, "org.apache.spark.sql.streaming.OutputMode")
    return {"append": modes.Append, "update": modes.Update, "complete": modes.Complete}[mode.value]()


def count_state_rows(operators: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Sum the rows in state by the names of the operators in a progress report."""
    rows_by_operator: dict[str, int] = {}
    for operator in operators:
        rows_by_operator[operator["operatorName"]] = (
            rows_by_operator.get(operator["operatorName"], 0) + operator["numRowsTotal"]
        )
    return rows_by_operator
