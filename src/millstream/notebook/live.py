"""A streaming DataFrame that is run to be looked at: its newest rows, and how it fares."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import threading
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import functions as F
from pyspark.sql.types import DateType, StructType, TimestampNTZType, TimestampType

from millstream.diagnostics.failure import WrongUse
from millstream.runtime import complaints
from millstream.runtime.judging import refusal
from millstream.spec.mode import OutputMode

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

# Aggregated rows are shown whole where Spark can; other rows as they come.
_MODES = (OutputMode.COMPLETE, OutputMode.APPEND, OutputMode.UPDATE)
_TIMES = (TimestampType, TimestampNTZType, DateType)


def mode_of(frame: DataFrame, title: str, wanted: str | None) -> OutputMode:
    """The output mode to show it in. Raises `WrongUse` with Spark's words where it runs in none, or not in this."""
    modes = (OutputMode(wanted),) if wanted else _MODES
    refusals = [(mode, refusal(frame, mode)) for mode in modes]
    for mode, refused in refusals:
        if refused is None:
            return mode
    mode, last = refusals[-1]
    assert last is not None
    about = f"in output mode {mode}: {last.sentence}" if wanted else last.sentence
    raise WrongUse(f"{title} cannot be shown {about}", last.fix)


class Newest:
    """The newest rows of a stream, at most `most`, which a query of its own brings; it writes nothing."""

    def __init__(self, frame: DataFrame, title: str, mode: OutputMode, most: int, trigger: str) -> None:
        self._most = most
        self._mode = mode
        self._lock = threading.Lock()
        self._rows: pa.Table | None = None
        self._columns = flat(frame).columns
        self._wrong: str | None = None
        self._stopped = False
        self._folder = tempfile.mkdtemp(prefix="millstream-display-")
        self.batches = 0
        self.changed = threading.Event()
        writer = flat(frame).writeStream.queryName(f"display of {title}").outputMode(mode)
        writer = writer.option("checkpointLocation", self._folder).trigger(processingTime=trigger)
        self._query: StreamingQuery = writer.foreachBatch(self._take).start()

    @property
    def rows(self) -> pd.DataFrame:
        """The newest first."""
        with self._lock:
            kept = self._rows
        return empty(self._columns) if kept is None else as_pandas(kept)

    @property
    def running(self) -> bool:
        """Does the query still run?"""
        try:
            return self._query.isActive
        except Py4JError:
            return False

    @property
    def error(self) -> str | None:
        """Why it ended by itself, in Spark's words."""
        if self._wrong is not None:
            return self._wrong
        try:
            wrong = self._query.exception()
        except Py4JError:
            return "Spark's JVM has ended"
        return None if wrong is None else complaints.words(wrong)[0]

    def stop(self) -> None:
        """End the query and remove what it kept on disk; does nothing the second time."""
        self._stopped = True
        # A JVM that is gone has no query either.
        with contextlib.suppress(Py4JError, PySparkException):
            self._query.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _take(self, batch: DataFrame, _: int) -> None:
        try:
            came = newest(batch, self._most)
        except PySparkException as wrong:
            if self._stopped:
                # The end of the query cut its batch off.
                return
            # What Spark tells of it later holds the traceback of this function.
            self._wrong = complaints.words(wrong)[0]
            raise
        with self._lock:
            whole = self._mode is OutputMode.COMPLETE or self._rows is None
            self._rows = came if whole else pa.concat_tables([came, self._rows]).slice(0, self._most)
            self.batches += 1
        self.changed.set()


def newest(frame: DataFrame, most: int) -> pa.Table:
    """The rows with the latest times, at most `most`; any rows where there is no time."""
    times = [one.name for one in frame.schema if isinstance(one.dataType, _TIMES)]
    ordered = frame.orderBy(F.col(_quoted(times[0])).desc_nulls_last()) if times else frame
    return ordered.limit(most).toArrow()


def as_pandas(rows: pa.Table) -> pd.DataFrame:
    """The rows for Python, their times in the session's zone and without it."""
    made: pd.DataFrame = rows.to_pandas()
    for name, kind in zip(rows.column_names, rows.schema.types, strict=True):
        if pa.types.is_timestamp(kind) and kind.tz:
            made[name] = made[name].dt.tz_localize(None)
    return made


def flat(frame: DataFrame) -> DataFrame:
    """With the start of a window in place of the window, so that it can be shown and drawn."""
    made: list[Any] = []
    for one in frame.schema:
        window = isinstance(one.dataType, StructType) and one.dataType.names == ["start", "end"]
        column = F.col(_quoted(one.name))
        made.append(column["start"].alias(one.name) if window else column)
    return frame.select(*made)


def empty(columns: list[str]) -> pd.DataFrame:
    """No rows, with the names of the columns."""
    return as_pandas(pa.table({name: pa.array([], pa.null()) for name in columns}))


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
