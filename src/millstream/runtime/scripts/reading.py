"""Readers for the time of a check: what a script reads has its columns and no rows, and nothing is asked for them."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.readwriter import DataFrameReader
from pyspark.sql.streaming.readwriter import DataStreamReader

from millstream.runtime.assemble import SOURCE_OPTION
from millstream.runtime.scripts import calls
from millstream.runtime.scripts.formats import EMPTY_AS_ITSELF, FILES, FIXED, KNOWN, UNCONNECTED, short
from millstream.runtime.scripts.record import Doubt, SourceRead
from millstream.runtime.scripts.unknown import Unknown

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql.types import StructType

    from millstream.runtime.scripts.patches import Patches
    from millstream.runtime.scripts.record import Recording

Reader = DataStreamReader | DataFrameReader

# Readers of these give the changes of a table with three columns of their own.
_CHANGES = "_change_type string, _commit_version bigint, _commit_timestamp timestamp"


@dataclass
class _Asked:
    """What a reader was told."""

    format: str = ""
    schema: Any = None
    options: dict[str, str] = field(default_factory=dict)
    name: str = ""


class Reading:
    """Replaces the methods of Spark's readers. `empty` is an empty folder."""

    def __init__(self, recording: Recording, empty: str) -> None:
        self.recording = recording
        self.empty = empty
        self.python_sources: dict[str, Any] = {}
        self.own: Callable[[Any, str, bool], Any] = lambda _session, _name, _streaming: None
        """Gives the tables of a declarative pipeline: called with a session, a name, and whether it is a stream."""

    def install(self, patches: Patches) -> None:
        """Replace the methods of both readers."""
        for reader in (DataStreamReader, DataFrameReader):
            for method in ("format", "schema", "option", "options"):
                patches.wrap(reader, method, _told[method])
            patches.wrap(reader, "load", self._load)
            patches.wrap(reader, "table", self._table)
            patches.wrap(reader, "changes", self._table)
            for method in ("json", "csv", "parquet", "orc", "text", "xml"):
                patches.wrap(reader, method, self._file(method))
        patches.wrap(DataStreamReader, "name", _told_name)
        patches.wrap(DataFrameReader, "jdbc", self._jdbc)

    def table(self, session: Any, name: str, *, streaming: bool, original: Callable[[], Any]) -> Any:
        """A table or view: Spark's own where the session knows it, else by what the script said of it."""
        key = name.replace("`", "").lower()
        own = self.own(session, name, streaming)
        if own is not None:
            return own
        if key in self.recording.unknown:
            return Unknown(self.recording.unknown[key], self.recording, streaming=streaming)
        if _exists(session, name):
            return original()
        return self._known(session, _Asked(format="table"), name, streaming=streaming)

    def frame(self, spark: Any, schema: Any, *, streaming: bool) -> DataFrame:
        """A frame with these columns and no rows that stands for no source of the script's own."""
        reader = spark._jsparkSession.readStream() if streaming else spark._jsparkSession.read()
        return DataFrame(reader.schema(_java(spark, schema)).json(self.empty), spark)

    def of_table(self, session: Any, name: str, schema: Any, *, streaming: bool) -> DataFrame:
        """A table whose columns are known, without rows."""
        return self._empty(session, _Asked(format="table", name=name), schema, name, streaming=streaming)

    def _load(
        self, _original: Any, reader: Reader, path: Any = None, format: Any = None, schema: Any = None,
        **options: Any,
    ) -> Any:  # fmt: skip
        if format is not None:
            reader.format(format)
        if schema is not None:
            reader.schema(schema)
        reader.options(**options)
        asked = _asked(reader)
        streaming = isinstance(reader, DataStreamReader)
        default = reader._spark.conf.get("spark.sql.sources.default", "parquet") or "parquet"
        kind = short(asked.format or default)
        asked.format = kind
        place = path if isinstance(path, str) else (path[0] if path else asked.options.get("path", ""))
        if kind in UNCONNECTED and (streaming or kind != "kafka"):
            return self._kept(reader, asked, streaming=streaming)
        if kind in FILES or (kind in KNOWN and asked.schema is None):
            return self._files(reader, asked, place, streaming=streaming)
        return self._known(reader._spark, asked, place, streaming=streaming)

    def _kept(self, reader: Reader, asked: _Asked, *, streaming: bool) -> Any:
        """A reader that connects when its query starts and not before: Spark's own frame."""
        name = self._read(asked, "", streaming=streaming)
        reader._jreader = reader._jreader.option(SOURCE_OPTION, name)
        return reader._df(reader._jreader.load())

    def _files(self, reader: Reader, asked: _Asked, place: str, *, streaming: bool) -> Any:
        """Files, and formats whose columns are always the same."""
        spark, kind = reader._spark, asked.format
        schema = asked.schema or KNOWN.get(kind)
        if schema is None and kind not in FIXED:
            infers = not streaming or spark.conf.get("spark.sql.streaming.schemaInference") == "true"
            if infers:
                return self._known(spark, asked, place, streaming=streaming)
        return self._empty(spark, asked, schema, place, streaming=streaming)

    def _known(self, spark: Any, asked: _Asked, place: str, *, streaming: bool) -> Any:
        """Columns from what the script gave or wrote, from a Python source, or from a local file."""
        key = place.replace("`", "").rstrip("/").lower()
        schema = asked.schema or self.recording.tables.get(key) or self._python(asked)
        if schema is None and place:
            schema = _of_local_files(spark, asked, place)
        if schema is not None:
            if str(asked.options.get("readChangeFeed", "")).lower() == "true":
                schema = f"{_ddl(schema)}, {_CHANGES}"
            return self._empty(spark, asked, schema, place, streaming=streaming)
        span = calls.here()
        place = place or asked.options.get("dbtable", "")
        what = f"{asked.format} {place}".strip()
        doubt = Doubt(
            what,
            "its columns are not known without connecting",
            span,
            "give the reader a schema with .schema(…)",
        )
        self.recording.emptied = True
        return Unknown(self.recording.doubt(doubt), self.recording, streaming=streaming)

    def _empty(self, spark: Any, asked: _Asked, schema: Any, place: str, *, streaming: bool) -> DataFrame:
        """A frame with these columns and no rows."""
        name = self._read(asked, place, streaming=streaming)
        self.recording.emptied = True
        given = {key: value for key, value in asked.options.items() if key.lower() not in ("path", "paths")}
        kind = asked.format if asked.format in EMPTY_AS_ITSELF else "json"
        # Past our own methods: this reader is ours, and not the script's.
        reader = spark._jsparkSession.readStream() if streaming else spark._jsparkSession.read()
        reader = reader.format(kind).option(SOURCE_OPTION, name)
        if schema is not None:
            reader = reader.schema(_ddl(schema) if isinstance(schema, str) else _java(spark, schema))
        if kind == asked.format:
            for key, value in given.items():
                reader = reader.option(key, value)
        return DataFrame(reader.load(self.empty), spark)

    def _read(self, asked: _Asked, place: str, *, streaming: bool) -> str:
        """Remember a source, and give its name."""
        frame = calls.users_frame()
        span = calls.here()
        wanted = asked.name or calls.name_of(frame) or asked.format
        options = {**asked.options, **({"path": place} if place else {})}
        known = self.recording.sources.get(wanted)
        if known and (known.format, known.options) == (asked.format, options):
            # Read again, for another query.
            return wanted
        name = self.recording.fresh(wanted)
        self.recording.sources[name] = SourceRead(name, asked.format, options, span, streaming)
        return name

    def _table(self, original: Any, reader: Reader, name: str) -> Any:
        streaming = isinstance(reader, DataStreamReader)
        return self.table(reader._spark, name, streaming=streaming, original=lambda: original(reader, name))

    def _jdbc(self, _original: Any, reader: Reader, url: str, table: str, *_more: Any, **_named: Any) -> Any:
        return self._known(reader._spark, _Asked(format="jdbc", options={"url": url}), table, streaming=False)

    def _file(self, kind: str) -> Callable[..., Any]:
        """The method of a reader that is called like its format."""

        def method(original: Any, reader: Reader, *paths: Any, **named: Any) -> Any:
            bound = inspect.signature(original).bind(reader, *paths, **named).arguments
            bound.pop("self", None)
            place = bound.pop("path", None) or bound.pop("paths", None)
            bound.update(bound.pop("options", {}))
            if place is not None and not isinstance(place, str | list | tuple):
                return original(reader, *paths, **named)
            schema = bound.pop("schema", None)
            options = {key: value for key, value in bound.items() if value is not None}
            return self._load(None, reader, place, format=kind, schema=schema, **options)

        return method

    def _python(self, asked: _Asked) -> Any:
        """The columns of a data source written in Python and registered by the script."""
        kind = self.python_sources.get(asked.format)
        return None if kind is None else kind(options=dict(asked.options)).schema()


def _exists(session: Any, name: str) -> bool:
    try:
        return bool(session._jsparkSession.catalog().tableExists(name))
    except PySparkException:
        # A name in a catalog that this session does not know.
        return False


def _of_local_files(spark: Any, asked: _Asked, place: str) -> StructType | None:
    """The columns that files on this machine have; None where there are none, or they cannot be read."""
    path = Path(place.removeprefix("file://"))
    if "://" in place.removeprefix("file://") or asked.format not in (*FILES, "delta") or not path.exists():
        return None
    reader = spark._jsparkSession.read().format(asked.format)
    for key, value in asked.options.items():
        if key.lower() != "path":
            reader = reader.option(key, value)
    try:
        frame = reader.load(str(path))
    except PySparkException:
        # An empty folder, or files of another format: nothing is known of them.
        return None
    from pyspark.sql.dataframe import DataFrame  # noqa: PLC0415 - Spark makes frames in this way

    return DataFrame(frame, spark).schema


def _asked(reader: Any) -> _Asked:
    found: _Asked = reader.__dict__.setdefault("_millstream", _Asked())
    return found


def _ddl(schema: Any) -> str:
    return schema if isinstance(schema, str) else ", ".join(
        f"`{one.name}` {one.dataType.simpleString()}" for one in schema.fields
    )  # fmt: skip


def _java(spark: Any, schema: Any) -> Any:
    return spark._jsparkSession.parseDataType(schema.json())


def _told_format(original: Any, reader: Any, source: str) -> Any:
    _asked(reader).format = source
    return original(reader, source)


def _told_schema(original: Any, reader: Any, schema: Any) -> Any:
    _asked(reader).schema = schema
    return original(reader, schema)


def _told_option(original: Any, reader: Any, key: str, value: Any) -> Any:
    _asked(reader).options[key] = str(value).lower() if isinstance(value, bool) else str(value)
    return original(reader, key, value)


def _told_options(original: Any, reader: Any, **options: Any) -> Any:
    for key, value in options.items():
        _asked(reader).options[key] = str(value).lower() if isinstance(value, bool) else str(value)
    return original(reader, **options)


def _told_name(original: Any, reader: Any, name: str) -> Any:
    _asked(reader).name = name
    return original(reader, name)


_told: dict[str, Callable[..., Any]] = {
    "format": _told_format,
    "schema": _told_schema,
    "option": _told_option,
    "options": _told_options,
}
