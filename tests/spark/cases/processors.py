"""Processors of the pipeline beside this file: state and timers by transformWithStateInPandas."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pandas as pd
from pyspark.sql import functions as f
from pyspark.sql.streaming import StatefulProcessor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import StatefulProcessorHandle
    from pyspark.sql.streaming.stateful_processor import ExpiredTimerInfo, TimerValues


def running(all_words: DataFrame) -> DataFrame:
    """Counts up to two; with the third a word is forgotten."""
    return _counted(all_words, Running(), "None")


def running_timer(words: DataFrame) -> DataFrame:
    """Counts up to two; `a` and `c` are forgotten five seconds after they came first, and -1 comes out."""
    return _counted(words, RunningWithTimer(), "processingTime")


def moved_timer(words: DataFrame) -> DataFrame:
    """Counts; the timer of `a` is moved when it comes a second time."""
    return _counted(words, MovedTimer(), "processingTime")


def three_timers(words: DataFrame) -> DataFrame:
    """Counts; the count comes out 5, 10 and 15 seconds after a word came first."""
    return _counted(words, ThreeTimers(), "processingTime")


def newest(timed: DataFrame) -> DataFrame:
    """The newest time of a word; NULL when the watermark is five seconds past it."""
    return _newest_times(timed, "Update")


def _newest_times(timed: DataFrame, mode: str) -> DataFrame:
    return timed.groupBy("word").transformWithStateInPandas(
        Newest(), "word string, newest timestamp", mode, "eventTime"
    )


def marked_again(timed: DataFrame) -> DataFrame:
    """A second watermark on the rows of a processor that has event time, and so the first one."""
    return _newest_times(timed, "Append").withWatermark("newest", "10 seconds")


def marked_by_the_clock(timed: DataFrame) -> DataFrame:
    """A second watermark on the rows of a processor that has the clock's time, and so none."""
    rows = timed.groupBy("word").transformWithStateInPandas(
        Running(), "word string, n int", "Append", "processingTime"
    )
    return rows.withColumn("at", f.timestamp_seconds("n")).withWatermark("at", "10 seconds")


def _counted(words: DataFrame, processor: StatefulProcessor, clock: str) -> DataFrame:
    return words.groupBy("word").transformWithStateInPandas(processor, "word string, n int", "Update", clock)


def _row(key: tuple[str], count: int) -> pd.DataFrame:
    return pd.DataFrame({"word": [key[0]], "n": [count]})


class Counting(StatefulProcessor):
    """One number a word."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the number."""
        self.handle = handle
        self.count = handle.getValueState("count", "n int")

    def total(self, rows: Iterator[pd.DataFrame]) -> int:
        """The number with these rows."""
        stored = self.count.get()[0] if self.count.exists() else 0
        return stored + sum(len(frame) for frame in rows)

    def close(self) -> None:
        """Nothing to close."""


class Running(Counting):
    """Forgets at three."""

    def handleInputRows(  # noqa: N802 - Spark's name
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: TimerValues,  # noqa: ARG002, N803 - Spark's name
    ) -> Iterator[pd.DataFrame]:
        """Count."""
        total = self.total(rows)
        if total == 3:
            self.count.clear()
            return
        self.count.update((total,))
        yield _row(key, total)


class RunningWithTimer(Running):
    """Forgets by the clock too."""

    def handleInputRows(  # noqa: N802 - Spark's name
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: TimerValues,  # noqa: N803 - Spark's name
    ) -> Iterator[pd.DataFrame]:
        """Count, and set the timer with the first."""
        if not self.count.exists() and key[0] in ("a", "c"):
            self.handle.registerTimer(timerValues.getCurrentProcessingTimeInMs() + 5_000)
        yield from super().handleInputRows(key, rows, timerValues)

    def handleExpiredTimer(  # noqa: N802 - Spark's name
        self,
        key: Any,
        timerValues: TimerValues,  # noqa: ARG002, N803 - Spark's name
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: ARG002, N803 - Spark's name
    ) -> Iterator[pd.DataFrame]:
        """Forget."""
        self.count.clear()
        yield _row(key, -1)


class MovedTimer(Counting):
    """A timer in the place of another."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the number and the timer's time."""
        super().init(handle)
        self.timer = handle.getValueState("timer", "at bigint")

    def handleInputRows(  # noqa: N802 - Spark's name
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: TimerValues,  # noqa: N803 - Spark's name
    ) -> Iterator[pd.DataFrame]:
        """Count; `a` has one timer, that of its newest row."""
        before = self.count.get()[0] if self.count.exists() else 0
        total = self.total(rows)
        self.count.update((total,))
        if key[0] == "a" and before < 2:
            if before == 1:
                self.handle.deleteTimer(self.timer.get()[0])
            at = timerValues.getCurrentProcessingTimeInMs() + (7_500 if before else 5_000)
            self.handle.registerTimer(at)
            self.timer.update((at,))
        yield _row(key, total)

    def handleExpiredTimer(  # noqa: N802 - Spark's name
        self,
        key: Any,
        timerValues: TimerValues,  # noqa: ARG002, N803 - Spark's name
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: ARG002, N803 - Spark's name
    ) -> Iterator[pd.DataFrame]:
        """Tell that it fired."""
        self.timer.clear()
        yield _row(key, -1)


class ThreeTimers(Counting):
    """Tells the number by the clock only."""

    def handleInputRows(  # noqa: N802 - Spark's name
        self,
        key: Any,  # noqa: ARG002 - Spark's signature
        rows: Iterator[pd.DataFrame],
        timerValues: TimerValues,  # noqa: N803 - Spark's name
    ) -> Iterator[pd.DataFrame]:
        """Count, and set three timers with the first."""
        self.count.update((self.total(rows),))
        if not list(self.handle.listTimers()):
            now = timerValues.getCurrentProcessingTimeInMs()
            for seconds in (5, 10, 15):
                self.handle.registerTimer(now + seconds * 1_000)
        yield from ()

    def handleExpiredTimer(  # noqa: N802 - Spark's name
        self,
        key: Any,
        timerValues: TimerValues,  # noqa: ARG002, N803 - Spark's name
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: ARG002, N803 - Spark's name
    ) -> Iterator[pd.DataFrame]:
        """Tell the number."""
        yield _row(key, self.count.get()[0])


class Newest(StatefulProcessor):
    """The newest time of a word, with one timer behind it."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the time and the timer's time."""
        self.handle = handle
        self.newest = handle.getValueState("newest", "at timestamp")
        self.timer = handle.getValueState("timer", "at bigint")

    def handleInputRows(  # noqa: N802 - Spark's name
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: TimerValues,  # noqa: ARG002, N803 - Spark's name
    ) -> Iterator[pd.DataFrame]:
        """Keep the newest time, and move the timer behind it."""
        time: datetime = max(frame["at"].max() for frame in rows).to_pydatetime()
        if self.newest.exists():
            time = max(time, self.newest.get()[0])
        self.newest.update((time,))
        at = int((time.replace(tzinfo=UTC) + timedelta(seconds=5)).timestamp() * 1_000)
        before = self.timer.get()[0] if self.timer.exists() else 0
        if before < at:
            self.handle.deleteTimer(before)
            self.handle.registerTimer(at)
            self.timer.update((at,))
        yield pd.DataFrame({"word": [key[0]], "newest": [time]})

    def handleExpiredTimer(  # noqa: N802 - Spark's name
        self,
        key: Any,
        timerValues: TimerValues,  # noqa: ARG002, N803 - Spark's name
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: ARG002, N803 - Spark's name
    ) -> Iterator[pd.DataFrame]:
        """Forget the word."""
        self.newest.clear()
        yield pd.DataFrame({"word": [key[0]], "newest": pd.Series([pd.NaT], dtype="datetime64[ns]")})

    def close(self) -> None:
        """Nothing to close."""
