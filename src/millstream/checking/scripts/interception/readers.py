"""Replace Spark's readers during a check, so that sources have columns but no rows, without any connection."""

from __future__ import annotations

import contextlib
import inspect
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.readwriter import DataFrameReader
from pyspark.sql.streaming.readwriter import DataStreamReader

from millstream.checking.scripts.interception import call_sites
from millstream.checking.scripts.interception.absent import MARK, Absent, has_mark
from millstream.checking.scripts.interception.placeholders import PROBE, Unknown
from millstream.checking.scripts.interception.recording import Doubt, SourceRead
from millstream.checking.scripts.interception.spark_formats import (
    EMPTY_AS_ITSELF,
    FILES,
    FIXED,
    KNOWN,
    UNCONNECTED,
    short_name,
)
from millstream.checking.scripts.local_files import columns_of_files, tell_why_unread
from millstream.checking.scripts.sql_text import TableViews
from millstream.connectors import spark_formats
from millstream.frames.build_views import SOURCE_OPTION
from millstream.spark import internals

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.checking.scripts.interception.monkeypatch import Patches
    from millstream.checking.scripts.interception.recording import Recording
    from millstream.diagnostics.finding import Span

Reader = DataStreamReader | DataFrameReader

# Options that Spark reads before a query starts, with values that it accepts.
_NEEDED = {
    "assign": '{"topic":[0]}',
    "host": "localhost",
    "kafka.bootstrap.servers": "localhost:9092",
    "port": "9999",
    "subscribe": "topic",
    "subscribepattern": "topic",
}

# The three columns that a change data feed adds to the columns of its table.
_CHANGES = "_change_type string, _commit_version bigint, _commit_timestamp timestamp"
# Options that say where files are. A frame without rows is read elsewhere.
_PLACES = frozenset({"path", "paths", "basepath"})


@dataclass
class _ReaderSettings:
    """The settings of a reader."""

    format: str = ""
    schema: Any = None
    options: dict[str, str] = field(default_factory=dict)
    name: str = ""
    spans: dict[str, Span] = field(default_factory=dict)
    """The call that sets each option."""


class ReaderPatch:
    """Replaces the methods of Spark's readers. `empty` is an empty folder."""

    def __init__(self, recording: Recording, empty: str) -> None:
        self.recording = recording
        self.empty = empty
        self.views = TableViews()
        self.python_sources: dict[str, Any] = {}
        self.read_dataset: Callable[[Any, str, bool], Any] = lambda _session, _name, _streaming: None
        """Returns a dataset of a declarative pipeline, given a session, a name, and whether to read a stream."""

    def install(self, patches: Patches) -> None:
        """Replace the methods of both readers."""
        for reader in (DataStreamReader, DataFrameReader):
            for method in ("format", "schema", "option", "options"):
                patches.wrap(reader, method, _RECORDERS[method])
            patches.wrap(reader, "load", self._load)
            patches.wrap(reader, "table", self._table)
            patches.wrap(reader, "changes", self._table)
            for method in spark_formats.FILE_METHODS:
                patches.wrap(reader, method, self._file(method))
        patches.wrap(DataStreamReader, "name", _record_name)
        patches.wrap(DataFrameReader, "jdbc", self._jdbc)

    def table(self, session: Any, name: str, *, streaming: bool, original: Callable[[], Any]) -> Any:
        """Return a table or view: Spark's own if the session has it, else an empty one with the recorded columns."""
        key = name.replace("`", "").lower()
        dataset = self.read_dataset(session, name, streaming)
        if dataset is None:
            dataset = self._read_written_table(session, name, streaming=streaming)
        if dataset is not None:
            return dataset
        if key in self.recording.unknown:
            return self.recording.unknown[key]
        if self.has_table(session, name):
            schema = self.recording.columns_of(name) if streaming else None
            if schema is None or internals.java_session(session).table(name).isStreaming():
                return original()
            # The view of a written table, which a query in SQL has read before.
            return self.empty_table(session, name, schema, streaming=True)
        return self._known_columns_or_unknown(
            session, _ReaderSettings(format="table"), name, streaming=streaming
        )

    def has_table(self, session: Any, name: str) -> bool:
        """Return whether the session has this table or view. A view of the check for another table does not count."""
        try:
            exists = bool(internals.java_session(session).catalog().tableExists(name))
        except PySparkException:
            # The name refers to a catalog that this session does not know.
            return False
        view = name.replace("`", "")
        return exists and not self.views.has_other_table(view, internals.find_temporary_view(session, view))

    def frame(self, spark: Any, schema: Any, *, streaming: bool) -> DataFrame:
        """Return a frame with these columns and no rows, without recording a source."""
        reader = (
            internals.java_session(spark).readStream() if streaming else internals.java_session(spark).read()
        )
        return DataFrame(reader.schema(_java_schema(spark, schema)).json(self.empty), spark)

    def empty_table(self, session: Any, name: str, schema: Any, *, streaming: bool) -> DataFrame:
        """Return an empty table whose columns are known."""
        return self._empty(
            session, _ReaderSettings(format="table", name=name), schema, name, streaming=streaming
        )

    def _load(
        self, _original: Any, reader: Reader, path: Any = None, format: Any = None, schema: Any = None,
        **options: Any,
    ) -> Any:  # fmt: skip
        if format is not None:
            reader.format(format)
        if schema is not None:
            reader.schema(schema)
        reader.options(**options)
        settings = _settings_of(reader)
        streaming = isinstance(reader, DataStreamReader)
        unknown = next(
            (value for value in (settings.schema, format, settings.format) if isinstance(value, Absent)), None
        )
        if unknown is not None and unknown is settings.schema and settings.format in FILES:
            # A probe has the columns that the script names.
            settings.schema = None
            place = path if isinstance(path, str) else settings.options.get("path", "")
            return self._unknown(reader._spark, settings, place, unknown.doubt, streaming=streaming)
        if unknown is not None:
            return Unknown(unknown.doubt, self.recording, streaming=streaming)
        default = (
            reader._spark.conf.get("spark.sql.sources.default", spark_formats.DEFAULT)
            or spark_formats.DEFAULT
        )
        kind = short_name(settings.format or default)
        settings.format = kind
        place = path if isinstance(path, str) else (path[0] if path else settings.options.get("path", ""))
        written = self._read_written_table(reader._spark, str(place), streaming=streaming)
        if written is not None:
            return written
        if kind in UNCONNECTED and (streaming or kind != spark_formats.KAFKA):
            return self._unconnected(reader, settings, streaming=streaming)
        if kind in FILES or (kind in KNOWN and settings.schema is None):
            return self._files(reader, settings, place, streaming=streaming)
        return self._known_columns_or_unknown(reader._spark, settings, place, streaming=streaming)

    def _unconnected(self, reader: Reader, settings: _ReaderSettings, *, streaming: bool) -> Any:
        """Return Spark's own frame for a format that connects only when its query starts."""
        name = self._record_source(settings, "", streaming=streaming)
        rows = self._read_input(reader._spark, name, streaming=streaming)
        if rows is not None:
            return rows
        reader._jreader = reader._jreader.option(SOURCE_OPTION, name)
        frame = reader._df(reader._jreader.load())
        self.recording.schemas[name] = frame.schema
        return frame

    def _files(self, reader: Reader, settings: _ReaderSettings, place: str, *, streaming: bool) -> Any:
        """Return an empty frame for a file format or a format with fixed columns."""
        spark, kind = reader._spark, settings.format
        schema = settings.schema or KNOWN.get(kind)
        if schema is None and kind not in FIXED:
            # Auto Loader of Databricks infers columns from the files.
            infers = (
                not streaming
                or kind == "cloudfiles"
                or spark.conf.get("spark.sql.streaming.schemaInference") == "true"
            )
            if infers:
                return self._known_columns_or_unknown(spark, settings, place, streaming=streaming)
        return self._empty(spark, settings, schema, place, streaming=streaming)

    def _known_columns_or_unknown(
        self, spark: Any, settings: _ReaderSettings, place: str, *, streaming: bool
    ) -> Any:
        """Return an empty frame with columns from the script, a Python source or local files, else an unknown one."""
        schema = settings.schema or self.recording.columns_of(place) or self._python_columns(settings)
        reason = "a check does not connect to it"
        if schema is None and place and settings.format in (*FILES, spark_formats.DELTA):
            reason = reason if has_mark(place) else tell_why_unread(place)
            project = self.recording.project
            schema = columns_of_files(spark, settings.format, settings.options, place, project)
        if schema is not None:
            if str(settings.options.get("readChangeFeed", "")).lower() == "true":
                # Unlike `simpleString`, it quotes the names of fields of structs that need quotes.
                schema = f"{schema if isinstance(schema, str) else schema.toDDL()}, {_CHANGES}"
            return self._empty(spark, settings, schema, place, streaming=streaming)
        span = call_sites.current_span()
        place = place or settings.options.get("dbtable", "")
        label = f"{settings.format} {place}".strip()
        doubt = Doubt(
            label,
            f"its columns are unknown, because {reason}",
            span,
            f"pass the columns: --table '{place}=DDL'"
            if settings.format == "table" or not place
            else "give the reader a schema with .schema(…)",
        )
        return self._unknown(spark, settings, place, self.recording.doubt(doubt), streaming=streaming)

    def unknown_table(
        self, session: Any, name: str, doubt: Doubt, *, streaming: bool, written: Unknown | None = None
    ) -> Unknown:
        """Return a table whose columns are not known, except for those that a flow has `written`."""
        settings = _ReaderSettings(format="table", name=name)
        return self._unknown(session, settings, name, doubt, streaming=streaming, written=written)

    def unknown_frame(self, session: Any, doubt: Doubt, *, streaming: bool) -> Unknown:
        """Return a stream or a table of which nothing is known."""
        known = self.recording.doubt(doubt)
        return self._unknown(session, _ReaderSettings(), "", known, streaming=streaming)

    def _unknown(
        self, spark: Any, settings: _ReaderSettings, place: str, doubt: Doubt, *, streaming: bool,
        written: Unknown | None = None,
    ) -> Unknown:  # fmt: skip
        """Return a frame whose columns are not known, with a probe for the operations that need none."""
        self.recording.has_emptied_sources = True
        probe, assumed = None, self.recording.assumed
        source = doubt.what if written is None else f"table {settings.name}"
        if self.recording.execution is None:
            schema = PROBE
            if assumed is not None:
                assumed.note_origins(source, () if written is None else written.sources)
                schema += assumed.ddl(source, getattr(written and written.probe, "schema", None))
            with contextlib.suppress(PySparkException):
                probe = self._empty(spark, settings, schema, place, streaming=streaming)
        sources = () if assumed is None else (source,)
        return Unknown(doubt, self.recording, streaming=streaming, probe=probe, sources=sources)

    def _empty(
        self, spark: Any, settings: _ReaderSettings, schema: Any, place: str, *, streaming: bool
    ) -> DataFrame:
        """Return a recorded frame with these columns and no rows."""
        name = self._record_source(settings, place, streaming=streaming)
        rows = self._read_input(spark, name, streaming=streaming)
        if rows is not None:
            return rows
        self.recording.has_emptied_sources = True
        options = {key: value for key, value in settings.options.items() if key.lower() not in _PLACES}
        kind = settings.format if settings.format in EMPTY_AS_ITSELF else "json"
        # The JVM's reader bypasses the replaced methods, because this is not a read of the script.
        reader = (
            internals.java_session(spark).readStream() if streaming else internals.java_session(spark).read()
        )
        reader = reader.format(kind).option(SOURCE_OPTION, name)
        if schema is not None:
            reader = reader.schema(schema if isinstance(schema, str) else _java_schema(spark, schema))
        if kind == settings.format:
            for key, value in options.items():
                reader = reader.option(key, value)
        frame = DataFrame(reader.load(self.empty), spark)
        if str(schema).startswith(PROBE):
            return frame
        self.recording.schemas[name] = frame.schema
        # Spark knows a table's columns by the table's name too.
        return frame.alias(settings.name.rpartition(".")[2].strip("`")) if settings.name else frame

    def _read_input(self, spark: Any, name: str, *, streaming: bool) -> DataFrame | None:
        """Return the rows of a source in a proof; None in a check."""
        execution = self.recording.execution
        return None if execution is None else execution.read(spark, name, streaming=streaming)

    def _read_written_table(self, spark: Any, place: str, *, streaming: bool) -> DataFrame | None:
        """Return a table that the script has written in a proof; None in a check."""
        execution = self.recording.execution
        if execution is None or not place:
            return None
        return execution.read_table(spark, place, streaming=streaming)

    def _record_source(self, settings: _ReaderSettings, place: str, *, streaming: bool) -> str:
        """Record a source and return its name."""
        span = call_sites.current_span()
        base_name = settings.name or call_sites.assigned_name(call_sites.find_user_frame()) or settings.format
        options = {**settings.options, **({"path": place} if place else {})}
        name = self.recording.name_source(base_name, settings.format, options)
        read = SourceRead(
            name, settings.format, options, span, streaming, settings.schema is not None, dict(settings.spans)
        )
        self.recording.sources.setdefault(name, read)
        return name

    def _table(self, original: Any, reader: Reader, name: str) -> Any:
        streaming = isinstance(reader, DataStreamReader)
        return self.table(reader._spark, name, streaming=streaming, original=lambda: original(reader, name))

    def _jdbc(self, _original: Any, reader: Reader, url: str, table: str, *_more: Any, **_kwargs: Any) -> Any:
        return self._known_columns_or_unknown(
            reader._spark, _ReaderSettings(format="jdbc", options={"url": url}), table, streaming=False
        )

    def _file(self, kind: str) -> Callable[..., Any]:
        """Return the replacement for a reader's method that is named like its format."""

        def method(original: Any, reader: Reader, *paths: Any, **kwargs: Any) -> Any:
            bound = inspect.signature(original).bind(reader, *paths, **kwargs).arguments
            bound.pop("self", None)
            place = bound.pop("path", None) or bound.pop("paths", None)
            bound.update(bound.pop("options", {}))
            if place is not None and not isinstance(place, str | list | tuple):
                return original(reader, *paths, **kwargs)
            schema = bound.pop("schema", None)
            options = {key: value for key, value in bound.items() if value is not None}
            return self._load(None, reader, place, format=kind, schema=schema, **options)

        return method

    def _python_columns(self, settings: _ReaderSettings) -> Any:
        """Return the columns of a Python data source that the script registered."""
        kind = self.python_sources.get(settings.format)
        return None if kind is None else kind(options=dict(settings.options)).schema()


def _settings_of(reader: Any) -> _ReaderSettings:
    settings: _ReaderSettings = reader.__dict__.setdefault("_millstream", _ReaderSettings())
    return settings


def _java_schema(spark: Any, schema: Any) -> Any:
    return internals.java_session(spark).parseDataType(schema.json())


def _record_format(original: Any, reader: Any, source: str) -> Any:
    _settings_of(reader).format = source
    return original(reader, source)


def _record_schema(original: Any, reader: Any, schema: Any) -> Any:
    _settings_of(reader).schema = schema
    return reader if isinstance(schema, Absent) else original(reader, schema)


def _record_option(original: Any, reader: Any, key: str, value: Any) -> Any:
    if (span := call_sites.current_span()) is not None:
        _settings_of(reader).spans[key] = span
    _settings_of(reader).options[key] = _option_text(value)
    return _pass_option(original, reader, key, value)


def _record_options(_original: Any, reader: Any, **options: Any) -> Any:
    for key, value in options.items():
        if (span := call_sites.current_span()) is not None:
            _settings_of(reader).spans[key] = span
        _settings_of(reader).options[key] = _option_text(value)
        _pass_option(reader.__class__.option, reader, key, value)
    return reader


def _option_text(value: Any) -> str:
    """Return the value of an option as text. None is an environment variable that is not set here."""
    return MARK if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _pass_option(original: Any, reader: Any, key: str, value: Any) -> Any:
    """Pass an option to Spark. One that is not known gets a value that Spark accepts, if it needs one at all."""
    if not isinstance(value, Absent | None):
        return original(reader, key, value)
    needed = _NEEDED.get(key.lower())
    return reader if needed is None else original(reader, key, needed)


def _record_name(original: Any, reader: Any, name: str) -> Any:
    _settings_of(reader).name = name
    return original(reader, name)


_RECORDERS: dict[str, Callable[..., Any]] = {
    "format": _record_format,
    "schema": _record_schema,
    "option": _record_option,
    "options": _record_options,
}
