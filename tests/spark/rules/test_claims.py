"""What the rules say that Spark does without a word, on Spark: short runs over files, one file a batch."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    Build = Callable[[DataFrame], DataFrame]

pytestmark = pytest.mark.usefixtures("small_batches")

SCHEMA = "k string, ts timestamp, t2 timestamp"
HALF_HOURS = [f"2026-01-01 {hour}:{minute}:00" for hour in (12, 13) for minute in ("00", "30")]


@pytest.fixture
def stream(spark: SparkSession, tmp_path: Path) -> DataFrame:
    """Four files of a row each, half an hour apart, read one a batch in their order."""
    folder = tmp_path / "rows"
    folder.mkdir()
    for number, time in enumerate(HALF_HOURS):
        file = folder / f"{number}.json"
        file.write_text(json.dumps({"k": f"k{number}", "ts": time, "t2": time}), encoding="utf-8")
        # Spark takes files in the order of these.
        os.utime(file, (1_700_000_000 + number, 1_700_000_000 + number))
    return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(folder))


def run(frame: DataFrame, checkpoint: Path, mode: str = "append") -> tuple[list[Any], list[int]]:
    """The rows that come out, and how many rows the state held after each batch."""
    rows: list[Any] = []
    query = (
        frame.writeStream.outputMode(mode)
        .option("checkpointLocation", str(checkpoint))
        .foreachBatch(lambda batch, _: rows.extend(batch.collect()))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    totals = [
        sum(progress.numRowsTotal for progress in batch.stateOperators) for batch in query.recentProgress
    ]
    return rows, totals


def marked(stream: DataFrame, name: str) -> DataFrame:
    return stream.withWatermark("ts", "1 minute").alias(name)


def test_a_second_watermark_fails_at_the_first_batch(stream: DataFrame, checkpoint: Path) -> None:
    twice = stream.withWatermark("ts", "10 minutes").withWatermark("ts", "1 minute")

    with pytest.raises(PySparkException, match="Redefining watermark is disallowed"):
        run(twice.select("k"), checkpoint)


def test_a_watermark_above_an_aggregation_lets_nothing_out(stream: DataFrame, checkpoint: Path) -> None:
    windows = marked(stream, "a").groupBy(F.window("ts", "5 minutes")).count()
    above = windows.select(F.col("window.start").alias("start"), "count").withWatermark("start", "1 minute")

    assert run(above, checkpoint)[0] == []


def test_two_event_times_fail_at_the_first_batch(stream: DataFrame, checkpoint: Path) -> None:
    twice = marked(stream, "a").withColumn("raw", F.col("ts")).dropDuplicatesWithinWatermark(["k"])

    with pytest.raises(PySparkException):
        run(twice, checkpoint)


def test_an_event_time_that_nothing_uses_does_not_count(stream: DataFrame, checkpoint: Path) -> None:
    once = marked(stream, "a").withColumn("raw", F.col("ts")).dropDuplicates(["k"]).select("k", "ts")

    assert len(run(once, checkpoint)[0]) == len(HALF_HOURS)


@pytest.mark.parametrize(
    ("condition", "both", "held"),
    [
        ("b.ts BETWEEN a.ts AND a.ts + INTERVAL 1 MINUTE", True, "cleared"),
        ("b.ts BETWEEN a.ts AND a.ts + INTERVAL 1 MINUTE", False, "all"),
        ("b.ts >= a.ts", True, "half"),
        ("a.ts = b.ts", False, "cleared"),
    ],
)
def test_a_join_keeps_what_nothing_bounds(
    stream: DataFrame, checkpoint: Path, condition: str, both: bool, held: str
) -> None:
    right = marked(stream, "b") if both else stream.alias("b")

    _, rows = run(marked(stream, "a").join(right, F.expr(f"a.k = b.k AND {condition}")), checkpoint)

    most = max(rows)
    assert ("all" if most == 2 * len(HALF_HOURS) else "half" if most > 4 else "cleared") == held


def test_a_time_cut_by_another_function_clears_no_state(stream: DataFrame, checkpoint: Path) -> None:
    hours = marked(stream, "a").groupBy(F.date_trunc("minute", "ts").alias("minute")).count()

    assert run(hours, checkpoint, "update")[1][-1] == len(HALF_HOURS)


def test_a_run_that_ends_keeps_its_last_window(stream: DataFrame, checkpoint: Path) -> None:
    windows = marked(stream, "a").groupBy(F.window("ts", "5 minutes")).count()

    assert len(run(windows, checkpoint)[0]) == len(HALF_HOURS) - 1


def test_a_limit_counts_over_all_batches(stream: DataFrame, checkpoint: Path) -> None:
    assert len(run(stream.limit(2), checkpoint)[0]) == 2


def test_a_function_over_groups_is_given_the_rows_of_one_batch(stream: DataFrame, checkpoint: Path) -> None:
    counted = stream.withColumn("k", F.lit("one")).groupBy("k")

    rows, _ = run(
        counted.applyInPandas(lambda rows: rows.head(1)[["k"]].assign(n=len(rows)), "k string, n int"),
        checkpoint,
    )

    assert [row.n for row in rows] == [1] * len(HALF_HOURS)


def test_windows_of_days_do_not_follow_the_time_zone(spark: SparkSession) -> None:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        window = "window(timestamp'2026-01-05 12:00:00', '1 day')"
        (row,) = spark.sql(f"SELECT string({window}.start) AS start").collect()
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(before))

    assert row.start == "2026-01-05 01:00:00"


def test_now_is_drawn_anew_where_current_timestamp_is_the_batch_s(
    stream: DataFrame, checkpoint: Path
) -> None:
    rows, _ = run(stream.selectExpr("now() AS drawn", "current_timestamp() AS kept").limit(1), checkpoint)

    # The batch's own time has whole milliseconds, as the log of offsets keeps it.
    assert rows[0].kept.microsecond % 1000 == 0
    assert rows[0].drawn > rows[0].kept
