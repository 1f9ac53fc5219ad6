"""Replace Spark's writers during a check: `start()` records the query, and nothing is written."""

from __future__ import annotations

import contextlib
import re
from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from pyspark.sql.merge import MergeIntoWriter
from pyspark.sql.readwriter import DataFrameWriter, DataFrameWriterV2
from pyspark.sql.streaming.readwriter import DataStreamWriter

from millstream.checking.scripts.interception import absent, call_sites, placeholders
from millstream.checking.scripts.interception.placeholders import Unknown, add_columns
from millstream.checking.scripts.interception.recording import StartedQuery, is_same_table
from millstream.checking.scripts.interception.sandbox import WaitReached
from millstream.checking.scripts.interception.spark_formats import short_name
from millstream.checking.scripts.interception.streaming_query import CheckedQuery
from millstream.connectors import spark_formats
from millstream.diagnostics.failure import MillstreamError
from millstream.spec.duration import Duration
from millstream.spec.output_mode import OutputMode
from millstream.spec.trigger import WORDS, Trigger

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.checking.scripts.interception.monkeypatch import Patches
    from millstream.checking.scripts.interception.recording import Recording

_FRACTION = re.compile(r"(\d*\.\d+)\s*s(?:econds?)?\b", re.IGNORECASE)
_TRIGGERS = {
    "processingTime": "processing_time",
    "once": "once",
    "availableNow": "available_now",
    "continuous": "continuous",
    "realTime": "real_time",
}
# Formats whose catalogs have tables of this format by default.
_LAKES = (spark_formats.DELTA, "iceberg")
# A script that starts a query again more often than this does so for ever.
MOST_RESTARTS = 30
# The setting for the folder of all checkpoints.
_COMMON_CHECKPOINT = "spark.sql.streaming.checkpointLocation"

# The methods of a stream's writer.
_METHODS = sorted(name for name in dir(DataStreamWriter) if not name.startswith("_"))

_BATCH = ("save", "insertInto", "saveAsTable", *spark_formats.FILE_METHODS, "jdbc")
_TABLE = ("create", "replace", "createOrReplace", "append", "overwrite", "overwritePartitions")


class WriterPatch:
    """Replaces the methods of Spark's writers."""

    def __init__(self, recording: Recording, open_frame: Callable[..., Any] | None = None) -> None:
        self.recording = recording
        self.open_frame = open_frame

    def install(self, patches: Patches) -> None:
        """Replace the methods that write or start, and record the settings of the others."""
        writers = [lambda doubt: Unknown(doubt, self.recording, streaming=True).writeStream]
        patches.set(absent, "open_writer", writers)
        patches.set(absent, "open_frame", [self.open_frame])
        patches.set(absent, "add_columns", [lambda doubt, frame: add_columns(doubt, frame, self.recording)])
        patches.set(placeholders, "unknown_writers", [UnknownWriter])
        for method in ("format", "outputMode", "queryName", "option", "options", "trigger", "partitionBy"):
            patches.wrap(DataStreamWriter, method, self._with_recording(method))
        patches.wrap(DataStreamWriter, "foreachBatch", self._foreach_batch)
        patches.wrap(DataStreamWriter, "foreach", self._foreach)
        patches.wrap(DataStreamWriter, "start", self._start)
        patches.wrap(DataStreamWriter, "toTable", self._to_table)
        if self.recording.is_notebook:
            # The former name of `toTable`, which Databricks still accepts.
            patches.set(
                DataStreamWriter, "table", lambda writer, *args, **named: writer.toTable(*args, **named)
            )
        for method in _BATCH:
            patches.wrap(DataFrameWriter, method, self._batch(method))
        for method in ("format", "mode", "option", "options"):
            patches.wrap(DataFrameWriter, method, self._batch_setting(method))
        for method in _TABLE:
            patches.wrap(DataFrameWriterV2, method, self._into_table)
        patches.wrap(MergeIntoWriter, "merge", lambda *_args: None)

    def draft(self, writer: Any) -> StartedQuery:
        """Return the settings of a writer so far."""
        query: StartedQuery | None = writer.__dict__.get("_millstream")
        if query is None:
            query = writer.__dict__["_millstream"] = StartedQuery(0, writer._df)
        return query

    def started(self, writer: Any, target: str, session: Any) -> CheckedQuery:
        """Record the query of a writer whose settings are complete."""
        settings = self.draft(writer)
        # The script may change the writer, and start another query with it.
        query = replace(settings, options=dict(settings.options), option_spans=dict(settings.option_spans))
        query.number = len(self.recording.queries) + 1
        query.span, query.target = call_sites.current_span(), target or query.options.get("path", "")
        frame = call_sites.find_user_frame()
        conf = self.recording.conf
        if not query.has_name:
            query.name = call_sites.assigned_name(frame) or f"query {query.number}"
        if isinstance(query.frame, Unknown) and self.recording.assumed is not None:
            columns = {name.lower() for name in getattr(query.frame.probe, "columns", ())}
            missing = [name for name in query.partitioned if name.lower() not in columns]
            self.recording.assumed.add(query.frame.sources, missing)
        query.checkpoint = query.options.get("checkpointLocation", "")
        common = conf.get(_COMMON_CHECKPOINT, "")
        if common and not query.checkpoint and query.has_name:
            query.checkpoint = f"{common}/{query.name}"
        query.has_new_checkpoint = bool(common) and not query.checkpoint
        if not query.format:
            query.format = short_name(
                session.conf.get("spark.sql.sources.default", spark_formats.DEFAULT)
                if session
                else spark_formats.DEFAULT
            )
        if session is not None and not isinstance(query.frame, Unknown):
            query.columns = query.frame.schema
            keys = [query.target] if query.format != spark_formats.MEMORY else [query.name]
            for key in (known for known in keys if known and absent.MARK not in known):
                self.recording.tables[key.replace("`", "").rstrip("/").lower()] = query.columns
        restarted = next((handle for handle in self.recording.handles if handle.is_restarted_by(query)), None)
        if restarted is not None:
            restarted.restarts += 1
            if restarted.restarts > MOST_RESTARTS:
                raise WaitReached
            return CheckedQuery(restarted.query, self.recording)
        self.recording.queries.append(query)
        if self.recording.execution is not None:
            self.recording.execution.start(query)
        return CheckedQuery(query, self.recording)

    def _with_recording(self, method: str) -> Callable[..., Any]:
        """Return a replacement for a method that records its setting after Spark has accepted it."""

        def record(original: Any, writer: Any, *args: Any, **kwargs: Any) -> Any:
            is_known = not any(absent.has_mark(value) for value in (*args, *kwargs.values()))
            result = original(writer, *args, **kwargs) if is_known else writer
            record_setting(self.draft(writer), method, args, kwargs)
            return result

        return record

    def _foreach_batch(self, original: Any, writer: Any, func: Any) -> Any:
        if not callable(func):
            return original(writer, func)
        query = self.draft(writer)
        query.format, query.function = "foreachBatch", func
        return writer

    def _foreach(self, _original: Any, writer: Any, f: Any) -> Any:
        # Spark's own validation, which raises an error for an object without `process`.
        writer._construct_foreach_function(f)
        query = self.draft(writer)
        query.format, query.function = "foreach", f
        return writer

    def _start(
        self, _original: Any, writer: Any, path: str | None = None, format: str | None = None,
        outputMode: str | None = None, partitionBy: Any = None, queryName: str | None = None,  # noqa: N803
        **options: Any,
    ) -> CheckedQuery:  # fmt: skip
        writer.options(**options)
        for method, value in (
            ("outputMode", outputMode),
            ("partitionBy", partitionBy),
            ("format", format),
            ("queryName", queryName),
        ):
            if value is not None:
                getattr(writer, method)(value)
        return self.started(writer, path or "", writer._spark)

    def _to_table(
        self, _original: Any, writer: Any, tableName: str, format: str | None = None,  # noqa: N803
        outputMode: str | None = None, partitionBy: Any = None, queryName: str | None = None,  # noqa: N803
        **options: Any,
    ) -> CheckedQuery:  # fmt: skip
        query = self.draft(writer)
        if format is None and not query.format:
            query.format = self._format_of_table(tableName)
        return self._start(None, writer, tableName, format, outputMode, partitionBy, queryName, **options)

    def _format_of_table(self, name: str) -> str:
        """Return the format of a table; "" if a new table has Spark's default."""
        key = name.replace("`", "").lower()
        known = next(
            (kind for table, kind in self.recording.providers.items() if is_same_table(table, key)), ""
        )
        settings = " ".join(f"{key}={value}" for key, value in self.recording.conf.items()).lower()
        lake = next((kind for kind in _LAKES if f"{kind}.sql" in settings or f".{kind}." in settings), "")
        return known or lake or (spark_formats.DELTA if self.recording.is_notebook else "")

    def _batch(self, method: str) -> Callable[..., None]:
        """Return a replacement for a method that writes: it records the columns, and writes in a proof only."""

        def write(_original: Any, writer: Any, *args: Any, **kwargs: Any) -> None:
            strings = (argument for argument in (*args, *kwargs.values()) if isinstance(argument, str))
            target = next(strings, "")
            if self.recording.execution is not None:
                calls = [*writer.__dict__.get("_millstream", ()), (method, args, kwargs)]
                self.recording.execution.write(writer._df, calls)
            if target and absent.MARK not in target and not isinstance(writer._df, Unknown):
                key = target.replace("`", "").rstrip("/").lower()
                self.recording.tables.setdefault(key, writer._df.schema)

        return write

    def _batch_setting(self, method: str) -> Callable[..., Any]:
        """Return a replacement for a method of the batch writer that keeps its arguments."""

        def record(original: Any, writer: Any, *args: Any, **kwargs: Any) -> Any:
            writer.__dict__.setdefault("_millstream", []).append((method, args, kwargs))
            return original(writer, *args, **kwargs)

        return record

    def _into_table(self, _original: Any, _writer: Any, *_args: Any) -> None:
        """Ignore a write of DataFrameWriterV2, because only the JVM knows the table's name."""
        if self.recording.execution is not None:
            self.recording.execution.skip("writeTo")


def record_setting(query: StartedQuery, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Record the setting of one writer method on a query."""
    match method:
        case "format":
            query.format = short_name(str(args[0] if args else kwargs["source"]))
            # Spark keeps the function, and writes to this sink instead of calling it.
            query.function = None
        case "outputMode":
            # The writer of an unknown stream accepts any mode.
            with contextlib.suppress(ValueError):
                query.mode = OutputMode(str(args[0] if args else kwargs["outputMode"]).lower())
            query.mode_span = call_sites.current_span()
        case "queryName":
            query.name, query.has_name = str(args[0] if args else kwargs["queryName"]), True
        case "option":
            key = _option_name(str(args[0] if args else kwargs["key"]))
            query.options[key] = _option_value(args[-1] if "value" not in kwargs else kwargs["value"])
            if (span := call_sites.current_span()) is not None:
                query.option_spans[key] = span
        case "options":
            options = {_option_name(key): _option_value(value) for key, value in kwargs.items()}
            query.options.update(options)
            if (span := call_sites.current_span()) is not None:
                query.option_spans.update(dict.fromkeys(kwargs, span))
        case "trigger":
            query.trigger, query.is_interval_known = _trigger(kwargs)
            query.trigger_span = call_sites.current_span()
        case "partitionBy":
            columns = args[0] if args and isinstance(args[0], list | tuple) else args
            query.partitioned = tuple(str(column) for column in columns)


def _option_name(name: str) -> str:
    """Return the name under which an option is recorded. Spark ignores its case."""
    return "checkpointLocation" if name.lower() == "checkpointlocation" else name


def _option_value(value: Any) -> str:
    """Return the value of an option as text. None is an environment variable that is not set here."""
    return absent.MARK if value is None else str(value)


def _trigger(kwargs: dict[str, Any]) -> tuple[Trigger, bool]:
    """Return a trigger, and whether its interval is known."""
    settings = {_TRIGGERS[key]: value for key, value in kwargs.items() if value is not None}
    is_known = True
    for key, value in settings.items():
        if key in WORDS:
            settings[key] = True if absent.has_mark(value) else value
        elif isinstance(value, str):
            interval = None if absent.has_mark(value) else _parse_interval(value)
            is_known = is_known and interval is not None
            settings[key] = interval or Duration("1 second")
    return Trigger(**settings), is_known


def _parse_interval(text: str) -> Duration | None:
    """Return an interval that Spark has accepted, which may begin with INTERVAL and have a fraction of a second."""
    text = re.sub(r"^\s*interval\b", "", text, flags=re.IGNORECASE)
    text = _FRACTION.sub(lambda part: f"{round(float(part[1]) * 1000)} milliseconds", text)
    with contextlib.suppress(ValueError):
        return Duration(text.strip())
    return None


class MisspelledMethodError(MillstreamError, AttributeError):
    """The script calls a method that no writer of a stream has, and whose name is nearly that of one."""

    def __init__(self, method: str) -> None:
        near = get_close_matches(method, _METHODS, n=1)
        named = f"'{DataStreamWriter.__name__}' object has no attribute '{method}'"
        super().__init__(f"AttributeError: {named}; did you mean '{near[0]}'?")


class UnknownWriter:
    """The writer of an unknown stream. Its query is recorded nevertheless."""

    def __init__(self, frame: Unknown, recording: Recording) -> None:
        self._df = frame
        self._writing = WriterPatch(recording)

    def foreachBatch(self, func: Any) -> UnknownWriter:  # noqa: N802 - Spark's name
        """Record the function."""
        query = self._writing.draft(self)
        query.format, query.function = "foreachBatch", func
        return self

    def start(self, path: str = "", **settings: Any) -> CheckedQuery:
        """Record the query."""
        for method in ("format", "outputMode", "queryName"):
            if settings.get(method) is not None:
                record_setting(self._writing.draft(self), method, (settings.pop(method),), {})
        record_setting(self._writing.draft(self), "options", (), settings)
        return self._writing.started(self, path, None)

    def toTable(self, tableName: str, **settings: Any) -> CheckedQuery:  # noqa: N802, N803 - Spark's names
        """Record the query."""
        query = self._writing.draft(self)
        query.format = query.format or self._writing._format_of_table(tableName)
        return self.start(tableName, **settings)

    table = toTable

    def __getattr__(self, method: str) -> Any:
        if method.startswith("__"):
            raise AttributeError(method)
        if not hasattr(DataStreamWriter, method) and get_close_matches(method, _METHODS, n=1, cutoff=0.85):
            raise MisspelledMethodError(method)

        def record(*args: Any, **kwargs: Any) -> UnknownWriter:
            record_setting(self._writing.draft(self), method, args, kwargs)
            return self

        return record
