"""The tables of sinks stay small, and Spark reads and writes them as before."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable

from millstream.connectors.api.writer import SinkIdentity
from millstream.connectors.delta.commit import maintenance, sink_maintenance, small_merge
from millstream.connectors.delta.commit.small_merge import BY_DELTA_RS
from millstream.connectors.delta.sink import DeltaSink
from millstream.connectors.delta.writer import DeltaWriter
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.usefixtures("small_batches")

INTERVAL, MOST_SMALL = 3, 2
SHORT = {
    "delta.logRetentionDuration": "interval 0 seconds",
    "delta.deletedFileRetentionDuration": "interval 0 seconds",
}


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Maintain after each three versions."""
    monkeypatch.setattr(maintenance, "INTERVAL", INTERVAL)
    monkeypatch.setattr(maintenance, "MOST_SMALL", MOST_SMALL)
    monkeypatch.setattr(maintenance, "DELETION_INTERVAL", 0.0)


def sink_of(folder: Path, **settings: Any) -> DeltaSink:
    return DeltaSink.model_validate({"path": str(folder / "t"), **settings})


def opened(spark: SparkSession, sink: DeltaSink, mode: str = "append") -> DeltaWriter:
    writer = DeltaWriter(sink, SinkIdentity("shop", "orders", "one", "delta:o", OutputMode(mode)))
    writer.open(spark, batch(spark, 0).schema)
    return writer


def batch(spark: SparkSession, number: int) -> DataFrame:
    """A new key, and the key of all batches, with NaN and the batch's number."""
    return spark.range(2).selectExpr(
        f"id * {number + 1} AS id",
        f"'batch {number}' AS text",
        f"IF(id = 0, DOUBLE('NaN'), DOUBLE({number})) AS ratio",
    )


def read(spark: SparkSession, sink: DeltaSink, condition: str = "true") -> list[tuple[int, str]]:
    rows = spark.read.format("delta").load(str(sink.path)).where(condition).orderBy("id", "text").collect()
    return [(row.id, row.text) for row in rows]


def data_files(sink: DeltaSink) -> list[Path]:
    return list(Path(str(sink.path)).glob("*.parquet"))


def test_a_table_of_small_merges_keeps_few_files_and_its_rows(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = sink_of(tmp_path, merge_on=["id"], properties=SHORT)
    writer = opened(spark, sink, "update")
    ways = [writer.write(batch(spark, number), number).way for number in range(2 * INTERVAL + 1)]

    assert ways == ["", *[BY_DELTA_RS] * (2 * INTERVAL)]
    last = 2 * INTERVAL
    expected = [(0, f"batch {last}"), *((number + 1, f"batch {number}") for number in range(last + 1))]
    assert read(spark, sink) == expected
    # A bound of a file of the maintenance must not hide the NaN in it.
    assert read(spark, sink, "ratio > 1e9") == expected[:1]
    assert len(data_files(sink)) <= INTERVAL
    # A new start, a batch that is repeated, and one that Spark merges.
    again = opened(spark, sink, "update")
    assert again.write(batch(spark, last), last).is_skipped
    monkeypatch.setattr(small_merge, "MOST_ROWS", 1)
    assert again.write(batch(spark, last + 1), last + 1).way == ""
    assert read(spark, sink) == [(0, f"batch {last + 1}"), *expected[1:], (last + 2, f"batch {last + 1}")]


def test_files_of_appends_are_merged_and_a_stream_of_the_table_reads_each_row_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    sink = sink_of(tmp_path)
    writer = opened(spark, sink)

    def follow() -> None:
        stream = spark.readStream.format("delta").load(str(sink.path)).writeStream.format("delta")
        stream = stream.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True)
        stream.start(str(tmp_path / "copy")).awaitTermination()

    for number in range(INTERVAL - 2):
        writer.write(batch(spark, number), number)
    follow()
    for number in range(INTERVAL - 2, INTERVAL + 3):
        assert not writer.write(batch(spark, number), number).is_skipped
        assert writer.write(batch(spark, number), number).is_skipped
    follow()

    assert len(DeltaTable(str(sink.path)).file_uris()) <= 6
    rows = sorted(
        row
        for number in range(INTERVAL + 3)
        for row in ((0, f"batch {number}"), (number + 1, f"batch {number}"))
    )
    assert read(spark, sink) == rows
    assert read(spark, sink_of(tmp_path, path=str(tmp_path / "copy"))) == rows
    # Removed files stay for a week.
    assert len(data_files(sink)) > 2 * INTERVAL


def test_a_table_that_is_replaced_by_each_batch_keeps_few_files(spark: SparkSession, tmp_path: Path) -> None:
    sink = sink_of(tmp_path, properties=SHORT)
    writer = opened(spark, sink, "complete")
    for number in range(INTERVAL + 1):
        writer.write(batch(spark, number), number)

    assert read(spark, sink) == [(0, f"batch {INTERVAL}"), (INTERVAL + 1, f"batch {INTERVAL}")]
    assert len(data_files(sink)) <= 2


@pytest.mark.parametrize("is_created_by_us", [True, False], ids=["ours", "another program's"])
def test_old_versions_of_a_table_of_another_program_are_kept(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_created_by_us: bool
) -> None:
    monkeypatch.setattr(sink_maintenance, "DELTA_HISTORY", {maintenance.FILE_RETENTION: "interval 0 seconds"})
    monkeypatch.setattr(sink_maintenance, "DAY", 0.0)
    sink = sink_of(tmp_path)
    if not is_created_by_us:
        batch(spark, 99).write.format("delta").save(str(sink.path))
    writer = opened(spark, sink)
    for number in range(INTERVAL + 1):
        writer.write(batch(spark, number), number)

    table = DeltaTable(str(sink.path))
    assert "OPTIMIZE" in {commit["operation"] for commit in table.history()}
    assert (len(data_files(sink)) > len(table.file_uris())) is not is_created_by_us


@pytest.mark.parametrize(
    "settings",
    [{"maintain": False}, {"partition_by": ["text"]}, {"properties": {"delta.appendOnly": "true"}}],
    ids=["switched off", "partitioned", "a property that only Spark honours"],
)
def test_other_tables_are_left_alone(spark: SparkSession, tmp_path: Path, settings: dict[str, Any]) -> None:
    writer = opened(spark, sink_of(tmp_path, **settings))
    for number in range(INTERVAL + 2):
        writer.write(batch(spark, number), number)

    assert DeltaTable(str(tmp_path / "t")).version() == INTERVAL + 1
    assert not list((tmp_path / "t" / "_delta_log").glob(f"{INTERVAL:020}.checkpoint*"))


@pytest.mark.parametrize(
    ("settings", "mode", "expected"),
    [
        ({}, "append", {maintenance.FILE_RETENTION: "interval 7 days"}),
        ({}, "complete", maintenance.SHORT_HISTORY),
        ({"merge_on": ["id"]}, "update", maintenance.SHORT_HISTORY),
        ({"merge_on": ["id"], "maintain": False}, "update", {}),
        (
            {"merge_on": ["id"], "properties": {"delta.logRetentionDuration": "interval 9 days"}},
            "update",
            {**maintenance.SHORT_HISTORY, "delta.logRetentionDuration": "interval 9 days"},
        ),
    ],
    ids=["append", "complete", "merge", "switched off", "given"],
)
def test_a_table_is_created_with_the_time_that_it_keeps_old_files(
    spark: SparkSession, tmp_path: Path, settings: dict[str, Any], mode: str, expected: dict[str, str]
) -> None:
    opened(spark, sink_of(tmp_path, **settings), mode).write(batch(spark, 0), 0)

    assert DeltaTable(str(tmp_path / "t")).metadata().configuration == expected
