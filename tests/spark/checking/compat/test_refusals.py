"""What `start()` says of triggers, sinks and settings, and where a check of a spec puts it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from millstream.checking.check import check
from millstream.checking.compat import error_parser
from millstream.checking.compat.start_check import RefusalCause, find_refusal
from millstream.pipeline.spec_file import load_text
from millstream.spec.output_mode import OutputMode
from millstream.spec.trigger import Trigger

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from millstream.diagnostics.finding import Finding

APPEND, UPDATE, COMPLETE = OutputMode.APPEND, OutputMode.UPDATE, OutputMode.COMPLETE
REAL_TIME, CONTINUOUS = {"real_time": "10 seconds"}, {"continuous": "10 seconds"}


def plain(rows: DataFrame) -> DataFrame:
    return rows


def counted(rows: DataFrame) -> DataFrame:
    return rows.groupBy("value").count()


def marked(rows: DataFrame) -> DataFrame:
    return rows.withWatermark("timestamp", "1 minute")


def timed(rows: DataFrame) -> DataFrame:
    return rows.withColumn("at", F.current_timestamp())


def sorted_rows(rows: DataFrame) -> DataFrame:
    return rows.orderBy("value")


# A plan, a mode, a trigger, a sink, and words of what Spark says; no words where it starts.
STARTS: list[tuple[Callable[[DataFrame], DataFrame], OutputMode, dict[str, str], str, str]] = [
    (plain, APPEND, {}, "parquet", ""),
    (plain, UPDATE, {}, "parquet", "not supported in Data Source parquet"),
    (counted, COMPLETE, {}, "json", "not supported in Data Source json"),
    (sorted_rows, UPDATE, {}, "csv", "not supported in Data Source csv"),
    (plain, UPDATE, {}, "delta", "DELTA_UNSUPPORTED_OUTPUT_MODE"),
    (plain, APPEND, {}, "delta", ""),
    (plain, UPDATE, {}, "memory", ""),
    (counted, COMPLETE, {}, "memory", ""),
    (plain, UPDATE, {}, "foreachBatch", ""),
    (plain, UPDATE, CONTINUOUS, "foreachBatch", "'foreachBatch' is not supported with continuous trigger"),
    (plain, UPDATE, REAL_TIME, "foreachBatch", "ForeachBatchSink is not in the sink allowlist"),
    (plain, UPDATE, REAL_TIME, "memory", "MemorySink is not in the sink allowlist"),
    (plain, UPDATE, REAL_TIME, "noop", "NoopTable$ is not in the sink allowlist"),
    (plain, APPEND, REAL_TIME, "parquet", "FileStreamSink is not in the sink allowlist"),
    (plain, APPEND, REAL_TIME, "delta", "DeltaSink is not in the sink allowlist"),
    (plain, UPDATE, REAL_TIME, "console", ""),
    (plain, APPEND, REAL_TIME, "console", "The output mode Append is not supported"),
    (sorted_rows, UPDATE, REAL_TIME, "console", "Sorting is not supported"),
    (plain, UPDATE, {"real_time": "1 second"}, "console", "The real-time trigger interval is set to 1000 ms"),
    (plain, UPDATE, {"real_time": "1 second"}, "noop", "NoopTable$ is not in the sink allowlist"),
    (plain, APPEND, CONTINUOUS, "console", ""),
    (marked, APPEND, CONTINUOUS, "console", "does not support EventTimeWatermark operations"),
    (counted, UPDATE, CONTINUOUS, "console", "does not support Aggregate operations"),
    (counted, APPEND, CONTINUOUS, "console", "streaming aggregations without watermark"),
    (timed, APPEND, CONTINUOUS, "console", "does not support current time operations"),
]


def really_started(frame: DataFrame, mode: str, trigger: Trigger, sink: str, folder: Path) -> str:
    """What Spark says when the query is started; empty when it starts."""
    writer = frame.writeStream.outputMode(mode).option("checkpointLocation", str(folder / "checkpoint"))
    writer = writer.foreachBatch(lambda *_: None) if sink == "foreachBatch" else writer.format(sink)
    writer = writer.queryName("kept") if sink == "memory" else writer.option("path", str(folder / "rows"))
    writer = writer.trigger(**trigger.options()) if trigger.options() else writer
    try:
        writer.start().stop()
    except PySparkException as error:
        return error_parser.full_message(error)
    return ""


@pytest.mark.parametrize(
    ("plan", "mode", "trigger", "sink", "words"),
    STARTS,
    ids=[
        f"{plan.__name__} {mode} {next(iter(trigger), 'default')} {next(iter(trigger.values()), '')} {sink}"
        for plan, mode, trigger, sink, _ in STARTS
    ],
)
def test_what_start_says_of_a_trigger_and_a_sink_is_said_before(
    spark: SparkSession,
    tmp_path: Path,
    plan: Callable[[DataFrame], DataFrame],
    mode: OutputMode,
    trigger: dict[str, str],
    sink: str,
    words: str,
) -> None:
    # The one stream that Spark can read continuously and in batches without a server.
    frame = plan(spark.readStream.format("rate").load())

    refusal = find_refusal(frame, mode, Trigger(**trigger), sink)

    text = refusal.text if refusal else ""
    assert text == really_started(frame, mode, Trigger(**trigger), sink, tmp_path)
    assert (bool(text), words in text) == (bool(words), True)
    assert refusal is None or refusal.fix


def test_a_file_written_continuously_is_refused_though_start_takes_it(spark: SparkSession) -> None:
    frame = spark.readStream.format("rate").load()

    refusal = find_refusal(frame, APPEND, Trigger(**CONTINUOUS), "parquet")

    assert refusal is not None
    assert refusal.is_late
    assert refusal.sentence == "Unknown type of trigger: ContinuousTrigger(10000)"


def test_an_operator_that_real_time_mode_has_not_is_refused_though_start_takes_it(
    spark: SparkSession,
) -> None:
    frame = counted(spark.readStream.format("rate").load())

    refusal = find_refusal(frame, UPDATE, Trigger(**REAL_TIME), "console")

    assert refusal is not None
    assert (refusal.cause, refusal.is_late) == (RefusalCause.TRIGGER, True)
    assert "operators.stateful.StateStoreSaveExec are not in the operator allowlist" in refusal.sentence


def test_modes_in_which_spark_takes_the_plan_are_told(spark: SparkSession) -> None:
    refusal = find_refusal(counted(spark.readStream.format("rate").load()), APPEND)

    assert refusal is not None
    assert (refusal.cause, refusal.modes) == (RefusalCause.MODE, (UPDATE, COMPLETE))
    assert refusal.fix.endswith("or run the query in output mode update or complete")


SPEC = """name: shop
sources:
  orders:
    rate: {rows_per_second: 1}
    watermark: {event_time: timestamp, delay_threshold: 1 minute}
views:
  shown: |
    SELECT value, count(*) AS n
    FROM orders
    GROUP BY value
"""


def check_spec(
    spark: SparkSession, folder: Path, queries: str, spec: str = SPEC
) -> tuple[list[Finding], str]:
    """What is found, and the text that the finding of Spark's words marks."""
    text = spec + queries
    checked = check(load_text("pipeline.yml", text, folder, {}), spark)
    span = next((finding.span for finding in checked.verdict), None)
    line = text.splitlines()[span.line - 1][span.column - 1 : span.end_column - 1] if span else ""
    return list(checked.findings), line


def verdict(spark: SparkSession, folder: Path, queries: str) -> list[Finding]:
    """What Spark says, before the rules say it better."""
    return list(check(load_text("pipeline.yml", SPEC + queries, folder, {}), spark).verdict)


def test_a_mode_that_the_plan_has_not_is_marked_at_the_operator(spark: SparkSession, tmp_path: Path) -> None:
    queries = "queries:\n  shown: {output_mode: append, to: {console: {}}}\n"

    _, positions = check_spec(spark, tmp_path, queries)
    (finding,) = verdict(spark, tmp_path, queries)

    assert positions == "GROUP BY value"
    assert finding.message.startswith(
        "query 'shown' cannot run in output mode append: This output mode is not"
    )


def test_a_trigger_is_named_where_it_is_what_spark_refuses(spark: SparkSession, tmp_path: Path) -> None:
    queries = "queries:\n  shown: {output_mode: update, trigger: {continuous: 1 second}, to: {console: {}}}\n"

    (finding,) = verdict(spark, tmp_path, queries)

    assert finding.message.startswith("query 'shown' cannot run with trigger continuous 1 second: Continuous")


def test_a_mode_that_a_trigger_has_not_is_marked_at_the_trigger(spark: SparkSession, tmp_path: Path) -> None:
    queries = "queries:\n  orders: {trigger: {real_time: 10 seconds}, to: {console: {}}}\n"

    _, positions = check_spec(spark, tmp_path, queries, SPEC.partition("views:")[0])

    assert positions == "{real_time: 10 seconds}"


def test_an_operation_that_no_stream_has_is_not_put_down_to_the_mode(
    spark: SparkSession, tmp_path: Path
) -> None:
    spec = SPEC.replace("SELECT value, count(*) AS n", "SELECT value").replace("GROUP BY value", "OFFSET 1")

    findings, positions = check_spec(spark, tmp_path, "queries:\n  shown: {to: {console: {}}}\n", spec)

    assert "OFFSET 1" in positions
    assert "query 'shown' cannot run as a stream: Offset is not supported" in findings[0].message


@pytest.mark.parametrize(
    "setting",
    [
        "spark.sql.streaming.unsupportedOperationCheck",
        "spark.sql.streaming.statefulOperator.checkCorrectness.enabled",
    ],
)
def test_switching_off_sparks_checks_is_refused_and_hides_nothing(
    spark: SparkSession, tmp_path: Path, setting: str
) -> None:
    view = "SELECT n, count(*) AS m FROM (SELECT value, count(*) AS n FROM orders GROUP BY value) GROUP BY n"
    spec = f"{SPEC.partition('views:')[0]}spark: {{{setting}: false}}\nviews:\n  shown: {view}\n"

    spark.conf.set(setting, "false")
    try:
        findings, _ = check_spec(
            spark, tmp_path, "queries:\n  shown: {output_mode: update, to: {console: {}}}\n", spec
        )
        after = spark.conf.get(setting)
    finally:
        spark.conf.unset(setting)

    assert {"MS402", "MS311"} <= {finding.code for finding in findings}
    assert after == "false"
