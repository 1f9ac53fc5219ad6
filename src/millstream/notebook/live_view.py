"""Run a streaming DataFrame for display, and collect its newest rows."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import threading
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import functions as F
from pyspark.sql.types import DateType, StructType, TimestampNTZType, TimestampType

from millstream.checking.compat import error_parser
from millstream.checking.compat.start_check import find_refusal
from millstream.connectors.api.ddl import quote_name
from millstream.diagnostics.failure import InvalidInput
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

# Aggregations are shown in full if Spark supports it, other rows as they arrive.
_MODES = (OutputMode.COMPLETE, OutputMode.APPEND, OutputMode.UPDATE)
_TIMES = (TimestampType, TimestampNTZType, DateType)


def choose_output_mode(frame: DataFrame, title: str, requested_mode: str | None) -> OutputMode:
    """Return the output mode of the display. Raises `InvalidInput` with Spark's message if no mode is possible."""
    modes = (OutputMode(requested_mode),) if requested_mode else _MODES
    refusals = [(mode, find_refusal(frame, mode)) for mode in modes]
    for mode, reason in refusals:
        if reason is None:
            return mode
    mode, last_refusal = refusals[-1]
    assert last_refusal is not None
    reason_text = (
        f" in output mode {mode}: {last_refusal.sentence}" if requested_mode else f": {last_refusal.sentence}"
    )
    raise InvalidInput(f"{title} cannot be shown{reason_text}", last_refusal.fix)


class NewestRows:
    """Collects the newest rows of a stream, at most `most`, with a separate query that writes nothing."""

    def __init__(self, frame: DataFrame, title: str, mode: OutputMode, most: int, trigger: str) -> None:
        self._most = most
        self._mode = mode
        self._lock = threading.Lock()
        self._rows: pa.Table | None = None
        self._columns = flatten_windows(frame).columns
        self._error: str | None = None
        self._stopped = False
        self._folder = tempfile.mkdtemp(prefix="millstream-display-")
        self.batches = 0
        self.changed = threading.Event()
        # A session runs no two queries of one name, and several views may be on display.
        name = f"display of {title} {uuid4().hex[:8]}"
        with contextlib.ExitStack() as failed_start:
            failed_start.callback(shutil.rmtree, self._folder, ignore_errors=True)
            writer = flatten_windows(frame).writeStream.queryName(name).outputMode(mode)
            writer = writer.option("checkpointLocation", self._folder).trigger(processingTime=trigger)
            self._query: StreamingQuery = writer.foreachBatch(self._take).start()
            failed_start.pop_all()

    @property
    def rows(self) -> pd.DataFrame:
        """The rows, newest first."""
        with self._lock:
            collected = self._rows
        return empty_frame(self._columns) if collected is None else to_pandas_frame(collected)

    @property
    def running(self) -> bool:
        """Whether the query is running."""
        try:
            return self._query.isActive
        except Py4JError:
            return False

    @property
    def error(self) -> str | None:
        """Spark's error if the query has failed, else None."""
        if self._error is not None:
            return self._error
        try:
            failure = self._query.exception()
        except Py4JError:
            return "Spark's JVM has ended"
        return None if failure is None else error_parser.split_message(failure)[0]

    def stop(self) -> None:
        """Stop the query and delete its files. Further calls do nothing."""
        self._stopped = True
        # If the JVM has ended, so has the query.
        with contextlib.suppress(Py4JError, PySparkException):
            self._query.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _take(self, batch: DataFrame, _: int) -> None:
        try:
            arrived = newest_rows(batch, self._most)
        except PySparkException as error:
            if self._stopped:
                # Stopping the query has interrupted its batch.
                return
            # Parsed here, because Spark's later error contains the traceback of this function.
            self._error = error_parser.split_message(error)[0]
            raise
        with self._lock:
            replaces_all = self._mode is OutputMode.COMPLETE or self._rows is None
            self._rows = (
                arrived if replaces_all else pa.concat_tables([arrived, self._rows]).slice(0, self._most)
            )
            self.batches += 1
        self.changed.set()


def newest_rows(frame: DataFrame, most: int) -> pa.Table:
    """Return at most `most` rows, those with the latest times if there is a time column."""
    times = [column.name for column in frame.schema if isinstance(column.dataType, _TIMES)]
    ordered = frame.orderBy(F.col(quote_name(times[0])).desc_nulls_last()) if times else frame
    return ordered.limit(most).toArrow()


def to_pandas_frame(rows: pa.Table) -> pd.DataFrame:
    """Convert rows to pandas, with times in the session's zone but without zone information."""
    frame: pd.DataFrame = rows.to_pandas()
    for name, kind in zip(rows.column_names, rows.schema.types, strict=True):
        if pa.types.is_timestamp(kind) and kind.tz:
            frame[name] = frame[name].dt.tz_localize(None)
    return frame


def flatten_windows(frame: DataFrame) -> DataFrame:
    """Replace window columns with the start of the window, so that they can be shown and plotted."""
    columns: list[Any] = []
    for field in frame.schema:
        window = isinstance(field.dataType, StructType) and field.dataType.names == ["start", "end"]
        column = F.col(quote_name(field.name))
        columns.append(column["start"].alias(field.name) if window else column)
    return frame.select(*columns)


def empty_frame(columns: list[str]) -> pd.DataFrame:
    """Return no rows with these column names."""
    return to_pandas_frame(pa.table({name: pa.array([], pa.null()) for name in columns}))
