"""Check a sink's output mode and trigger as Spark does before it checks the plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from py4j.java_gateway import JavaClass
from pyspark.errors import StreamingQueryException
from pyspark.errors.exceptions.captured import convert_exception

from millstream.connectors import spark_formats

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.errors import PySparkException

    from millstream.spec.trigger import Trigger

_SOURCES = "org.apache.spark.sql.execution.streaming.sources."
# The classes of sinks that accept only whole batches, and therefore no real-time trigger. Spark 4.2's
# RealTimeModeAllowlist contains console, foreach and kafka.
_BATCH_SINKS = {
    "foreachbatch": f"{_SOURCES}ForeachBatchSink",
    spark_formats.MEMORY: f"{_SOURCES}MemorySink",
    spark_formats.NOOP: "org.apache.spark.sql.execution.datasources.noop.NoopTable$",
    spark_formats.DELTA: "org.apache.spark.sql.delta.sources.DeltaSink",
}
_FILE_SINK = "org.apache.spark.sql.execution.streaming.sinks.FileStreamSink"


def check_sink(jvm: Any, sink: str, mode: Any, trigger: Trigger) -> None:
    """Raise Spark's error for this format, output mode and trigger. Formats that are not known here pass."""
    kind = sink.lower()
    errors = jvm.org.apache.spark.sql.errors.QueryCompilationErrors
    if kind == "foreachbatch" and trigger.continuous:
        raise convert_exception(errors.sourceNotSupportedWithContinuousTriggerError("foreachBatch"))
    if kind in spark_formats.WRITABLE_FILES and mode.toString() != "Append":
        raise convert_exception(errors.dataSourceOutputModeUnsupportedError(sink, mode))
    if kind == spark_formats.DELTA and mode.toString() == "Update":
        raise convert_exception(_delta_error(jvm, errors, mode))
    name = _FILE_SINK if kind in spark_formats.WRITABLE_FILES else _BATCH_SINKS.get(kind)
    if trigger.real_time and name:
        parameters = {"errorType": "sink", "message": f"{name} is"}
        raise spark_error(jvm, "STREAMING_REAL_TIME_MODE.OPERATOR_OR_SINK_NOT_IN_ALLOWLIST", parameters)


def is_batch_sink(sink: str) -> bool:
    """Return whether Spark writes this format through its older interface, which supports only batches."""
    return sink.lower() in {*spark_formats.WRITABLE_FILES, spark_formats.DELTA}


def check_first_batch(sink: str, trigger: Trigger) -> None:
    """Raise the error that ends a query right after `start()`: a continuous trigger on a sink of whole batches."""
    if trigger.continuous and is_batch_sink(sink):
        millis = trigger.continuous.micros // 1000
        raise StreamingQueryException(f"Unknown type of trigger: ContinuousTrigger({millis})")


def spark_error(jvm: Any, error_class: str, words: Mapping[str, str]) -> PySparkException:
    """Return Spark's error of a class, with `words` as its message parameters."""
    parameters = jvm.java.util.HashMap()
    for key, value in words.items():
        parameters.put(key, value)
    return convert_exception(jvm.org.apache.spark.SparkIllegalArgumentException(error_class, parameters))


def _delta_error(jvm: Any, errors: Any, mode: Any) -> Any:
    """Return Delta's own error, or Spark's equivalent if Delta's jar is not installed."""
    delta_errors = jvm.org.apache.spark.sql.delta.DeltaErrors
    if not isinstance(delta_errors, JavaClass):
        return errors.dataSourceOutputModeUnsupportedError(spark_formats.DELTA, mode)
    source = "org.apache.spark.sql.delta.sources.DeltaDataSource"
    return delta_errors.outputModeNotSupportedException(source, mode.toString())
