"""What Spark refuses of a sink before it looks at the plan: its output mode, its trigger."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from py4j.java_gateway import JavaClass
from pyspark.errors import StreamingQueryException
from pyspark.errors.exceptions.captured import convert_exception

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.errors import PySparkException

    from millstream.spec.trigger import Trigger

_SOURCES = "org.apache.spark.sql.execution.streaming.sources."
# The classes of sinks that take whole batches and so no real-time trigger: Spark 4.2's RealTimeModeAllowlist
# holds console, foreach and kafka.
_BATCHED = {
    "foreachbatch": f"{_SOURCES}ForeachBatchSink",
    "memory": f"{_SOURCES}MemorySink",
    "noop": "org.apache.spark.sql.execution.datasources.noop.NoopTable$",
    "delta": "org.apache.spark.sql.delta.sources.DeltaSink",
}
_FILE_SINK = "org.apache.spark.sql.execution.streaming.sinks.FileStreamSink"
_FILES = ("avro", "csv", "json", "orc", "parquet", "text", "xml")


def check(jvm: Any, sink: str, mode: Any, trigger: Trigger) -> None:
    """Raise what Spark says of writing this format in this mode with this trigger; other formats pass."""
    kind = sink.lower()
    errors = jvm.org.apache.spark.sql.errors.QueryCompilationErrors
    if kind == "foreachbatch" and trigger.continuous:
        raise convert_exception(errors.sourceNotSupportedWithContinuousTriggerError("foreachBatch"))
    if kind in _FILES and mode.toString() != "Append":
        raise convert_exception(errors.dataSourceOutputModeUnsupportedError(sink, mode))
    if kind == "delta" and mode.toString() == "Update":
        raise convert_exception(_delta(jvm, errors, mode))
    name = _FILE_SINK if kind in _FILES else _BATCHED.get(kind)
    if trigger.real_time and name:
        words = {"errorType": "sink", "message": f"{name} is"}
        raise spark_error(jvm, "STREAMING_REAL_TIME_MODE.OPERATOR_OR_SINK_NOT_IN_ALLOWLIST", words)


def in_batches(sink: str) -> bool:
    """Is this format written by Spark's older interface, which knows batches only?"""
    return sink.lower() in (*_FILES, "delta")


def late(sink: str, trigger: Trigger) -> None:
    """Raise what ends a query at once after `start()` took it: a sink without rows one by one."""
    if trigger.continuous and in_batches(sink):
        millis = trigger.continuous.micros // 1000
        raise StreamingQueryException(f"Unknown type of trigger: ContinuousTrigger({millis})")


def spark_error(jvm: Any, error_class: str, words: Mapping[str, str]) -> PySparkException:
    """Spark's error of a class, with its own text around `words`."""
    parameters = jvm.java.util.HashMap()
    for key, value in words.items():
        parameters.put(key, value)
    return convert_exception(jvm.org.apache.spark.SparkIllegalArgumentException(error_class, parameters))


def _delta(jvm: Any, errors: Any, mode: Any) -> Any:
    """Delta's own error; Spark's of the same sense where Delta's jar is not there."""
    own = jvm.org.apache.spark.sql.delta.DeltaErrors
    if not isinstance(own, JavaClass):
        return errors.dataSourceOutputModeUnsupportedError("delta", mode)
    source = "org.apache.spark.sql.delta.sources.DeltaDataSource"
    return own.outputModeNotSupportedException(source, mode.toString())
