"""Replace the session that a script creates with a session of the check."""

from __future__ import annotations

import sys
from functools import partial
from types import FunctionType
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.core.rdd import RDD
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession, functions
from pyspark.sql.avro import functions as avro_functions
from pyspark.sql.classic.dataframe import DataFrame as ClassicFrame
from pyspark.sql.conf import RuntimeConfig
from pyspark.sql.datasource import DataSourceRegistration
from pyspark.sql.functions import builtin
from pyspark.sql.types import StructType
from pyspark.sql.udf import UDFRegistration
from pyspark.streaming import StreamingContext

from millstream.checking.scripts.interception import call_sites
from millstream.checking.scripts.interception.absent import Absent, has_mark
from millstream.checking.scripts.interception.placeholders import PROBE, Unknown, add_columns
from millstream.checking.scripts.interception.recording import Doubt, WaitCall
from millstream.checking.scripts.json_paths import replace_json_paths

if TYPE_CHECKING:
    from millstream.checking.scripts.interception.monkeypatch import Patches
    from millstream.checking.scripts.interception.readers import ReaderPatch
    from millstream.checking.scripts.interception.recording import Recording

# Settings with these prefixes load code, open a warehouse or belong to the session of the check.
_IGNORED_SETTINGS = (
    "spark.sql.extensions",
    "spark.sql.catalog",
    "spark.sql.defaultCatalog",
    "spark.sql.warehouse",
    "spark.sql.hive",
    "spark.sql.ui",
)
# Methods that take another frame, and return an unknown one if that frame is unknown.
_TWO_FRAME_METHODS = (
    "join", "crossJoin", "union", "unionAll", "unionByName", "intersect", "intersectAll", "subtract",
    "exceptAll", "lateralJoin",
)  # fmt: skip
# How many of the given rows are searched for a value that is not known.
_MOST_ROWS = 50
_STREAMING_CALLS = ("start", "stop", "checkpoint")
_FILE_READS = ("textFile", "wholeTextFiles", "binaryFiles", "sequenceFile", "hadoopFile", "newAPIHadoopFile")
_RDD_WRITES = (
    "foreach", "foreachPartition", "saveAsTextFile", "saveAsPickleFile", "saveAsSequenceFile", "saveAsHadoopFile",
    "saveAsNewAPIHadoopFile", "saveAsHadoopDataset", "saveAsNewAPIHadoopDataset", "checkpoint", "localCheckpoint",
)  # fmt: skip


class Sessions:
    """Replaces the methods that create and stop sessions and contexts."""

    def __init__(self, lent: Any, recording: Recording, reading: ReaderPatch) -> None:
        self.lent = lent
        self.recording = recording
        self.reading = reading
        self._from_json: Any = None

    def install(self, patches: Patches) -> None:
        """Replace the methods of sessions, contexts, frames and their conf."""
        for method in ("getOrCreate", "create"):
            patches.wrap(SparkSession.Builder, method, self._session)
        for owner in (SparkSession, SparkContext):
            patches.set(owner, "stop", lambda *_args: None)
        patches.set(SparkSession, "newSession", lambda _session: self.lent)
        context = self.lent.sparkContext
        patches.set(SparkContext, "__new__", staticmethod(lambda *_args, **_kwargs: context))
        patches.set(
            SparkContext, "__init__", lambda *args, **kwargs: _return_none(self._context(*args, **kwargs))
        )
        patches.set(SparkContext, "getOrCreate", classmethod(self._context))
        patches.set(SparkContext, "addPyFile", lambda _context, path: sys.path.insert(1, path))
        for method in ("setLogLevel", "addFile", "addArchive", "setCheckpointDir", "setJobGroup"):
            patches.set(SparkContext, method, lambda *_args, **_kwargs: None)
        for method in _STREAMING_CALLS:
            # Spark's former streaming API, whose receivers connect in the JVM.
            patches.set(StreamingContext, method, lambda *_args, **_kwargs: True)
        for method in ("awaitTermination", "awaitTerminationOrTimeout"):
            patches.set(
                StreamingContext, method, lambda _context, *args, **_named: self._await_context(*args)
            )
        for method in _FILE_READS:
            patches.set(SparkContext, method, lambda context, *_args, **_kwargs: context.parallelize([]))
        for method in _RDD_WRITES:
            patches.set(RDD, method, lambda *_args, **_kwargs: None)
        self._frames(patches)
        patches.wrap(SparkSession, "createDataFrame", self._create_frame)
        patches.wrap(RuntimeConfig, "set", self._set)
        patches.wrap(RuntimeConfig, "get", self._get)
        patches.wrap(SparkConf, "get", self._get_submitted)
        patches.wrap(UDFRegistration, "register", _register_function)
        for method in ("registerJavaFunction", "registerJavaUDAF"):
            patches.wrap(UDFRegistration, method, self._register_java_function)
        patches.wrap(
            DataSourceRegistration, "register", lambda _original, _sources, kind: self._register(kind)
        )

    def _create_frame(
        self, original: Any, session: SparkSession, data: Any, schema: Any = None, *args: Any, **named: Any
    ) -> Any:
        """Create a frame. One of rows that are not known, with columns that are, has no rows."""
        if isinstance(schema, str | StructType) and not has_mark(schema) and _has_stand_in(data):
            self.recording.has_emptied_sources = True
            return original(session, [], schema)
        return original(session, data, schema, *args, **named)

    def _register_java_function(
        self, original: Any, registration: Any, name: Any, javaClassName: Any, *args: Any, **named: Any  # noqa: N803
    ) -> None:  # fmt: skip
        """Register a function of a jar. One whose class is not here gets a stand-in of the same type."""
        try:
            original(registration, name, javaClassName, *args, **named)
        except PySparkException as error:
            if "load class" not in str(error):
                raise
            doubt = Doubt(f"the class {javaClassName}", "its jar is not here", call_sites.current_span())
            stand_in = Absent(self.recording.doubt(doubt))
            registration.register(name, stand_in, next(iter((*args, *named.values())), None))

    def _await_context(self, *args: Any) -> bool:
        """Note that the script waits, which keeps its queries running too."""
        wait = WaitCall(None, len(self.recording.queries), call_sites.current_span(), is_bounded=bool(args))
        self.recording.waits.append(wait)
        return True

    def _frames(self, patches: Patches) -> None:
        for name, method in list(vars(DataFrame).items()):
            if isinstance(method, FunctionType) and not name.startswith("_"):
                # `reduce(DataFrame.union, frames)` calls the method of the class.
                patches.wrap(DataFrame, name, partial(_of_unknown, name))
        for method in _TWO_FRAME_METHODS:
            patches.wrap(ClassicFrame, method, self._two_frames)
        # Calls inside the user's function are noted one by one, not as one call of `transform`.
        patches.set(
            ClassicFrame, "transform", lambda frame, func, *args, **kwargs: func(frame, *args, **kwargs)
        )
        self._from_json = functions.from_json
        patches.wrap(avro_functions, "from_avro", self._decode)
        patches.wrap(
            avro_functions,
            "to_avro",
            lambda original, data, schema="": original(data, "" if has_mark(schema) else schema),
        )
        if self.recording.is_notebook:
            for method in ("selectExpr", "filter", "where"):
                patches.wrap(ClassicFrame, method, self._in_words_of_spark)
            patches.wrap(builtin, "expr", self._in_words_of_spark)
            patches.set(functions, "expr", vars(builtin)["expr"])
        for name, around in (
            ("broadcast", self._two_frames),
            ("from_json", self._decode),
            ("lit", lambda original, value: original(str(value) if isinstance(value, Absent) else value)),
            ("window", _window),
            ("session_window", _window),
        ):
            patches.wrap(builtin, name, around)
            patches.set(functions, name, vars(builtin)[name])
        patches.wrap(ClassicFrame, "withColumn", self._with_column)
        patches.wrap(
            ClassicFrame,
            "withWatermark",
            lambda original, frame, eventTime, delayThreshold: original(  # noqa: N803 - Spark's names
                frame, eventTime, _known_duration(delayThreshold)
            ),
        )
        for method in ("checkpoint", "localCheckpoint"):
            patches.set(ClassicFrame, method, lambda frame, *_args, **_kwargs: frame)
        # Databricks has `display` too.
        for method in ("foreach", "foreachPartition", "display"):
            patches.set(ClassicFrame, method, lambda *_args, **_kwargs: None)

    def _in_words_of_spark(self, original: Any, *args: Any) -> Any:
        """Call a function of SQL texts. Databricks accepts more of them than Spark."""
        try:
            return original(*args)
        except (PySparkException, Py4JError):
            # Spark's errors, as the JVM raises them or with PySpark's class. Errors of Python are the script's own.
            texts = [replace_json_paths(value) if isinstance(value, str) else value for value in args]
            if texts == [*args]:
                raise
            return original(*texts)

    def _decode(self, original: Any, column: Any, schema: Any, *more: Any, **named: Any) -> Any:
        """Decode with the schema that the user gives for the topic that was read last, if the script's is unknown."""
        topics = [
            source.options.get("subscribe", "")
            for source in self.recording.sources.values()
            if source.is_streaming
        ]
        columns = next(
            (known for topic in reversed(topics) if (known := self.recording.columns_of(topic))), None
        )
        if isinstance(schema, Absent) and columns is not None:
            return self._from_json(column, columns)
        assumed = self.recording.assumed
        if has_mark(schema) and assumed is not None:
            doubts = self.recording.doubts or [Doubt("the schema of messages", "", call_sites.current_span())]
            doubt = schema.doubt if isinstance(schema, Absent) else doubts[-1]
            self.recording.decoded.append(self.recording.doubt(doubt))
            source = doubt.what
            is_avro = original.__name__ == "from_avro"
            schema = assumed.avro(source) if is_avro else f"{PROBE}{assumed.ddl(source)}"
        return original(column, schema, *more, **named)

    def _session(self, _original: Any, builder: Any) -> SparkSession:
        for key, value in builder._options.items():
            self._set(None, self.lent.conf, key, value)
        lent: SparkSession = self.lent
        return lent

    def _context(self, *args: Any, **kwargs: Any) -> Any:
        """Apply the settings of a requested context, and return the existing context."""
        for argument in (*args, *kwargs.values()):
            for key, value in argument.getAll() if isinstance(argument, SparkConf) else ():
                self._set(None, self.lent.conf, key, value)
        return self.lent.sparkContext

    def _set(self, original: Any, conf: RuntimeConfig, key: str, value: Any) -> None:
        text = str(value).lower() if isinstance(value, bool) else str(value)
        is_ignored = key.startswith(_IGNORED_SETTINGS)
        if original is not None and not is_ignored and not conf.isModifiable(key):
            # Spark refuses settings of its context. It accepts those that it does not know, which are not for the
            # session of the check.
            original(conf, key, text)
            conf._jconf.unset(key)
        self.recording.conf[key] = text
        if (span := call_sites.current_span()) is not None:
            self.recording.conf_spans[key] = span
        if key.startswith("spark.sql.") and not is_ignored and conf.isModifiable(key):
            conf._jconf.set(key, text)

    def _get(self, original: Any, conf: RuntimeConfig, key: str, *default: Any, **wrong: Any) -> Any:
        if key in self.recording.conf and not wrong:
            return self.recording.conf[key]
        try:
            return original(conf, key, *default, **wrong)
        except PySparkException:
            return Absent(self.recording.doubt(_describe_setting(key)))

    def _get_submitted(self, original: Any, conf: SparkConf, key: str, *default: Any) -> Any:
        value = original(conf, key, *default)
        if value is not None or default or not call_sites.is_user_file(sys._getframe(2).f_code.co_filename):
            return value
        return self.recording.conf.get(key) or Absent(_describe_setting(key))

    def _register(self, kind: Any) -> None:
        self.reading.python_sources[kind.name().lower()] = kind

    def _with_column(self, original: Any, frame: DataFrame, name: str, column: Any) -> Any:
        """Add a column. One that is not known makes the frame unknown too."""
        if isinstance(column, Absent):
            return add_columns(column.doubt, frame, self.recording, name)
        return original(frame, name, column)

    def _two_frames(self, original: Any, frame: DataFrame, *args: Any, **kwargs: Any) -> Any:
        unknown = next(
            (
                argument
                for argument in (frame, *args, *kwargs.values())
                if isinstance(argument, Unknown | Absent)
            ),
            None,
        )
        if unknown is None:
            return original(frame, *args, **kwargs)
        if not any(isinstance(argument, Absent) for argument in (frame, *args, *kwargs.values())):
            return unknown.apply(original, (frame, *args), kwargs)
        streams = [
            argument
            for argument in (frame, *args)
            if isinstance(argument, DataFrame | Unknown) and argument.isStreaming
        ]
        return Unknown(unknown.doubt, self.recording, streaming=bool(streams))


def _of_unknown(name: str, original: Any, frame: Any, *args: Any, **kwargs: Any) -> Any:
    """Call a method of the class of frames for a frame that may be unknown."""
    return (
        getattr(frame, name)(*args, **kwargs) if type(frame) is Unknown else original(frame, *args, **kwargs)
    )


def _has_stand_in(rows: Any) -> bool:
    """Return whether rows are a stand-in, or have one as a value."""
    if isinstance(rows, Absent):
        return True
    if isinstance(rows, dict):
        return any(map(_has_stand_in, rows.values()))
    return isinstance(rows, list | tuple) and any(map(_has_stand_in, rows[:_MOST_ROWS]))


def _describe_setting(key: str) -> Doubt:
    span = call_sites.current_span()
    return Doubt(f"the setting {key}", "it is set when the script is submitted, not in the script", span)


def _register_function(original: Any, registration: Any, name: Any, f: Any, returnType: Any = None) -> Any:  # noqa: N803
    """Register a function. One that is not known returns texts, as a function of Python does by default."""
    if isinstance(f, Absent):
        kind = None if isinstance(returnType, Absent) else returnType
        original(registration, str(name), lambda *_args, **_named: None, kind)
        return f
    return original(registration, name, f, returnType)


def _window(original: Any, time_column: Any, *args: Any, **named: Any) -> Any:
    """Return the window of a time column. Its start is not replaced if it is not known."""
    known = {key: value if key == "startTime" else _known_duration(value) for key, value in named.items()}
    return original(time_column, *(_known_duration(value) for value in args[:2]), *args[2:], **known)


def _known_duration(value: Any) -> Any:
    """Return a duration, or one that Spark accepts in place of one that is not known."""
    return "1 minute" if has_mark(value) else value


def _return_none(_value: object) -> None:
    """Return None, as an initialiser must."""
