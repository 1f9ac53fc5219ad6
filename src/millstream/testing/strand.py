"""One streaming query under a test's own clock: it takes a batch when it is told to, and at no other time."""

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
from millstream.runtime.hand import Hand

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from millstream.spec.mode import OutputMode

# Seconds. A step takes a tenth of one; a loaded machine or a first Python worker takes ten.
LIMIT = 60.0
# Seconds between two looks at a query that works: a tenth of what was waited, within these; the first while it begins
# a batch, the second while it ends one. A look is four calls, for which the query's own Python function waits.
_BEGINS, _ENDS, _LONGEST = 0.001, 0.004, 0.02
# Of so many looks one asks whether the query is there at all.
_ALIVE = 8
# Spark keeps so many reports of a query, and then forgets the oldest (spark.sql.streaming.numRecentProgressUpdates).
_RETAINED = 100
# What Spark says of a query that has done all of a trigger and waits for the clock, and of one that has ended.
_PARKED = "Waiting for next trigger"
_ENDED = ("Stopped", "Terminated with exception")
# The shortest there is: a trigger for each tick of a clock that ticks when it is told to.
_TICK = "1 millisecond"


@dataclass
class Progress:
    """What Spark reports of one batch."""

    batch: int
    report: dict[str, Any]

    @property
    def used(self) -> int | None:
        """The watermark that the batch was of, in milliseconds since 1970; None for a query without one."""
        told = self.report.get("eventTime", {}).get("watermark")
        if told is None:
            return None
        return round(datetime.fromisoformat(told.replace("Z", "+00:00")).timestamp() * 1000)


@dataclass
class Strand:
    """A streaming query, its clock, and each start of it.

    Spark triggers by a `ManualClock`: each tick, a millisecond, is one trigger, and while the batch's own time is
    taken the clock says what the test says. For that the query is held at its progress lock, which it needs before
    it asks the clock what time its batch is of.
    """

    spark: SparkSession
    name: str
    now: int
    """What the clock says, in milliseconds since 1970."""
    limit: float = LIMIT
    handle: StreamingQuery | None = None
    error: Exception | None = None
    """What ended the query, since its last start."""
    _clock: Any = None
    _hand: Hand | None = None
    _tick: int = 0
    _seen: int = field(default=-1)
    _told: int = 0
    """So many reports have been read since the last start."""
    _execution: Any = None
    """Spark's own StreamExecution: asked for again, it would be one more call for each look."""
    _said: str = ""
    """What Spark said at the last look."""

    def start(
        self, frame: DataFrame, mode: OutputMode, deliver: Callable[[DataFrame, int], None], checkpoint: Path
    ) -> StreamingQuery:
        """Start it; its first trigger follows at once. Raises Spark's AnalysisException."""
        jvm: Any = self.spark._jvm
        self._clock = getattr(jvm, "org.apache.spark.util.ManualClock")(self.now)
        self._tick = self.now
        self.error = None
        self._seen = -1
        self._told = 0
        self._said = ""
        none = getattr(jvm, "scala.Option").empty()
        self._hand = Hand(deliver)
        writer = frame.writeStream.outputMode(mode.value).foreachBatch(self._hand)
        started = (
            self.spark._jsparkSession.sessionState()
            .streamingQueryManager()
            .startQuery(
                getattr(jvm, "scala.Option").apply(self.name),
                none,
                getattr(jvm, "scala.Option").apply(str(checkpoint)),
                frame._jdf,
                getattr(jvm, "org.apache.spark.api.python.PythonUtils").toScalaMap({}),
                _sink(jvm, writer, frame),
                _mode(jvm, mode),
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
        """Let one trigger come and end; afterwards the query is parked, or has died with `error`."""
        lock = self._stream.awaitProgressLock()
        lock.lock()
        try:
            self._tick = max(self._tick, self.now) + 1
            self._clock.setTime(self._tick)
            self._wait(lambda: lock.hasQueuedThreads(), "begin a batch", _BEGINS)
            self._clock.setTime(self.now)
        finally:
            lock.unlock()
        self.settle()

    def settle(self) -> None:
        """Wait until the query is parked, or has died."""
        self._wait(self._parked, "end a batch", _ENDS)

    def reports(self) -> list[Progress]:
        """The batches that ended since the last call, oldest first."""
        if self.handle is None:
            return []
        every = self.handle._jsq.recentProgress()
        many = len(every)
        told = [json.loads(every[at].json()) for at in range(self._told if many < _RETAINED else 0, many)]
        self._told = many
        # A trigger without a batch may be reported as well, under the number of the next batch.
        new = [one for one in told if one["batchId"] > self._seen and "addBatch" in one["durationMs"]]
        if new:
            self._seen = new[-1]["batchId"]
        return [Progress(one["batchId"], one) for one in new]

    def follow(self, last: Progress | None) -> list[Progress]:
        """Let the batches without data come that a moved watermark asks for after a batch; gives their reports.

        Spark evicts and emits by the watermark that a batch leaves, in the batch after it.
        """
        found: list[Progress] = []
        while self.alive and last is not None and last.used not in (None, self.watermark()):
            self.trigger()
            new = self.reports()
            found += new
            last = new[-1] if new else None
        return found

    def watermark(self) -> int:
        """The watermark of the next batch, in milliseconds since 1970; 0 where there is none yet."""
        tracker = self._stream.watermarkTracker()
        return int(tracker.currentWatermark()) if tracker is not None else 0

    def stop(self) -> None:
        """End it at once; it may be ended already."""
        if self.handle is not None:
            # A thread that does not heed its interruption is left behind: Spark gives up after `stopTimeout`.
            with contextlib.suppress(Py4JJavaError, PySparkException):
                self.handle.stop()
            self.handle = self._execution = None
        if self._hand is not None:
            self._hand.let_go()

    @property
    def alive(self) -> bool:
        """Does it run?"""
        return self.handle is not None and self.error is None

    @property
    def _stream(self) -> Any:
        assert self._execution is not None
        return self._execution

    def _parked(self) -> bool:
        status = self._stream.status()
        self._said = str(status.message())
        return self._said == _PARKED and not status.isTriggerActive()

    def _wait(self, reached: Callable[[], bool], what: str, least: float) -> None:
        """Wait for that, or for the query's death. Raises `MillstreamError` when neither comes in time.

        `least` is how many seconds there are between two looks at least.
        """
        assert self.handle is not None
        began = time.monotonic()
        until = began + self.limit
        looks = 0
        while not reached():
            looks += 1
            dying = looks % _ALIVE == 0 or self._said.startswith(_ENDED)
            if dying and not self.handle.isActive:
                self.error = self.handle.exception()
                return
            if time.monotonic() > until:
                doing = self.handle.status["message"]
                self.stop()
                raise MillstreamError(
                    f"query '{self.name}' did not {what} within {self.limit:g} s; it was at: {doing}",
                    "look for a function of the pipeline that does not return, or give the test more time",
                )
            time.sleep(min(max((time.monotonic() - began) / 10, least), _LONGEST))


def _sink(jvm: Any, writer: Any, frame: DataFrame) -> Any:
    """Spark's sink of a function for each batch: `start()` would make the same, under the machine's clock."""
    asked = writer._jwrite.getClass().getDeclaredField("foreachBatchWriter")
    asked.setAccessible(True)
    kind = getattr(jvm, "org.apache.spark.sql.execution.streaming.sources.ForeachBatchSink")
    return kind(asked.get(writer._jwrite), frame._jdf.exprEnc())


def _mode(jvm: Any, mode: OutputMode) -> Any:
    kinds = getattr(jvm, "org.apache.spark.sql.streaming.OutputMode")
    return {"append": kinds.Append, "update": kinds.Update, "complete": kinds.Complete}[mode.value]()
