"""Small batches that go to a Delta table without Spark's merge, and those that may not."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable

import delta_tables
from local_frames import create_frame
from millstream.connectors.api.writer import SinkIdentity
from millstream.connectors.delta.commit import small_merge
from millstream.connectors.delta.commit.small_merge import BY_DELTA_RS, MergeOutcome, SmallMerge
from millstream.connectors.delta.sink import DeltaSink
from millstream.connectors.delta.writer import DeltaWriter
from millstream.diagnostics.failure import MillstreamError, Outage
from millstream.spark import internals
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.usefixtures("small_batches")


def opened(spark: SparkSession, sink: DeltaSink, frame: DataFrame) -> DeltaWriter:
    writer = DeltaWriter(sink, SinkIdentity("shop", "orders", "one", "delta:o", OutputMode.UPDATE))
    writer.open(spark, frame.schema)
    return writer


def rows(spark: SparkSession, *values: tuple[int | None, str, str, float | None]) -> DataFrame:
    frame = create_frame(spark, values, "id BIGINT, at STRING, text STRING, ratio DOUBLE")
    return frame.selectExpr("id", "CAST(at AS TIMESTAMP) AS at", "text", "ratio")


Row = tuple[int | None, str, float | None]


def read_rows(sink: DeltaSink) -> list[Row]:
    rows = delta_tables.read_rows(str(sink.path), "id", "text", "ratio")
    return sorted(rows, key=lambda row: (row[0] is not None, row[0]))


def read_by_spark(spark: SparkSession, sink: DeltaSink) -> list[Row]:
    """The rows as Spark reads them from the files, without a cached log."""
    spark.catalog.clearCache()
    found = spark.read.format("delta").load(str(sink.path)).orderBy("id").collect()
    return [(row.id, row.text, row.ratio) for row in found]


NOON = "2026-01-01 12:00:00.001"
FIRST = (1, NOON, "a", 0.5), (2, NOON, "b", None), (3, NOON, "c", float("nan"))
SECOND = (2, NOON, "changed", 1.5), (4, NOON, "added", None)


@pytest.fixture
def sink(tmp_path: Path) -> DeltaSink:
    return DeltaSink.model_validate({"path": str(tmp_path / "t"), "merge_on": ["id", "at"]})


@pytest.fixture(scope="module")
def first_table(spark: SparkSession, small_batches: None, tmp_path_factory: pytest.TempPathFactory) -> Path:  # noqa: ARG001 - its settings
    """A table into which FIRST was written as batch 0."""
    folder = tmp_path_factory.mktemp("first") / "t"
    sink = DeltaSink.model_validate({"path": str(folder), "merge_on": ["id", "at"]})
    opened(spark, sink, rows(spark, *FIRST)).write(rows(spark, *FIRST), 0)
    return folder


@pytest.fixture
def filled(sink: DeltaSink, first_table: Path) -> DeltaSink:
    """The sink with a copy of that table."""
    shutil.copytree(first_table, str(sink.path))
    return sink


def test_it_merges_as_spark_does_with_number_and_metadata_in_one_commit(
    spark: SparkSession, sink: DeltaSink
) -> None:
    writer = opened(spark, sink, rows(spark, *FIRST))
    assert writer.write(rows(spark, *FIRST), 0).way == ""
    assert writer.write(rows(spark, *SECOND), 1).way == BY_DELTA_RS

    assert str(read_by_spark(spark, sink)) == str(
        [(1, "a", 0.5), (2, "changed", 1.5), (3, "c", float("nan")), (4, "added", None)]
    )
    again = opened(spark, sink, rows(spark, *FIRST))
    assert again.has_batch(1)
    assert not again.has_batch(2)
    entry = again.entry(1)
    assert entry is not None
    assert [one.batch for one in again.last_committed_batches(spark)] == [1]


def test_a_value_above_a_bound_is_found_although_nan_has_no_bound(
    spark: SparkSession, filled: DeltaSink
) -> None:
    writer = opened(spark, filled, rows(spark, *FIRST))
    assert writer.write(rows(spark, (1, NOON, "a", 0.25)), 1).way == BY_DELTA_RS

    found = spark.read.format("delta").load(str(filled.path)).where("ratio > 100").collect()
    assert [row.id for row in found] == [3]


def test_a_repeated_batch_changes_nothing(spark: SparkSession, filled: DeltaSink) -> None:
    writer = opened(spark, filled, rows(spark, *FIRST))
    writer.write(rows(spark, *SECOND), 1)
    writer.write(rows(spark, (2, NOON, "later", 3.0)), 2)

    writer._last = 0  # as a driver that looked before the others wrote
    assert writer.write(rows(spark, *SECOND), 1).is_skipped

    assert (2, "later", 3.0) in read_rows(filled)


def test_the_log_has_no_entry_of_a_batch_that_changed_nothing(spark: SparkSession, filled: DeltaSink) -> None:
    sink = filled.model_copy(update={"delete_when": "text = 'gone'"})
    writer = opened(spark, sink, rows(spark, *FIRST))

    results = [writer.write(rows(spark, (key, NOON, "gone", None)), batch) for batch, key in ((1, 9), (2, 1))]

    assert [result.is_recorded for result in results] == [False, True]
    assert [entry.batch for entry in writer.last_committed_batches(spark)] == [2]


def test_spark_appends_and_merges_after_it(spark: SparkSession, sink: DeltaSink) -> None:
    writer = opened(spark, sink, rows(spark, *FIRST))
    for batch in range(2):
        assert writer.write(rows(spark, (batch, NOON, str(batch), None)), batch).is_skipped is False
    writer.write(rows(spark, (None, NOON, "no id", None)), 2)
    writer.write(rows(spark, (None, NOON, "still no id", None)), 3)

    found = read_by_spark(spark, sink)
    assert found[0] == (None, "still no id", None)
    assert len(found) == 3


def test_the_number_survives_a_checkpoint_of_the_log(spark: SparkSession, filled: DeltaSink) -> None:
    writer = opened(spark, filled, rows(spark, *FIRST))
    writer.write(rows(spark, *SECOND), 1)
    DeltaTable(str(filled.path)).create_checkpoint()
    for old in (filled.path.local / "_delta_log").glob("*.json"):  # type: ignore[union-attr]
        if int(old.stem) < 1:
            old.unlink()
    internals.jvm(spark).org.apache.spark.sql.delta.DeltaLog.clearCache()

    again = opened(spark, filled, rows(spark, *FIRST))

    assert again.has_batch(1)
    assert again.write(rows(spark, *SECOND), 1).is_skipped


@pytest.mark.parametrize(
    "values",
    [
        [(None, NOON, "x", None)],
        [(1, "2026-01-01 12:00:00.000001", "x", None)],
    ],
    ids=["a NULL key", "a key in microseconds"],
)
def test_keys_that_the_two_could_compare_differently_are_left_to_spark(
    spark: SparkSession, sink: DeltaSink, values: list[tuple[int | None, str, str, float | None]]
) -> None:
    frame = rows(spark, *values)
    writer = opened(spark, sink, frame)
    writer.write(frame, 0)
    assert writer.write(frame, 1).way == ""
    assert len(read_rows(sink)) == 1


@pytest.mark.parametrize("row", [SECOND[0], (7, NOON, "new", None)], ids=["of the table", "new"])
def test_a_repeated_key_is_told_as_spark_tells_it(
    spark: SparkSession, filled: DeltaSink, row: tuple[int, str, str, float | None]
) -> None:
    writer = opened(spark, filled, rows(spark, *FIRST))

    with pytest.raises(MillstreamError, match="2 rows"):
        writer.write(rows(spark, row, row), 1)


@pytest.mark.parametrize(
    "property_",
    [
        "delta.enableDeletionVectors=true",
        "delta.enableRowTracking=true",
    ],
)
def test_a_table_with_a_feature_that_delta_rs_may_not_honour_is_left_to_spark(
    spark: SparkSession, tmp_path: Path, property_: str
) -> None:
    name, _, value = property_.partition("=")
    sink = DeltaSink.model_validate(
        {"path": str(tmp_path / "t"), "merge_on": ["id", "at"], "properties": {name: value}}
    )
    writer = opened(spark, sink, rows(spark, *FIRST))
    writer.write(rows(spark, *FIRST), 0)

    assert writer.write(rows(spark, *SECOND), 1).way == ""
    assert read_by_spark(spark, sink)[1] == (2, "changed", 1.5)


def test_a_large_batch_is_left_to_spark(
    spark: SparkSession, filled: DeltaSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(small_merge, "MOST_ROWS", 1)
    writer = opened(spark, filled, rows(spark, *FIRST))

    assert writer.write(rows(spark, SECOND[0]), 1).way == BY_DELTA_RS
    assert writer.write(rows(spark, *SECOND), 2).way == ""
    assert len(read_rows(filled)) == 4


def test_a_failed_attempt_is_repeated_by_spark(
    spark: SparkSession, filled: DeltaSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = opened(spark, filled, rows(spark, *FIRST))

    def fail(*_: object) -> None:
        raise OSError("the disk is away")

    monkeypatch.setattr(SmallMerge, "_merge", fail)
    assert writer.write(rows(spark, *SECOND), 1).way == ""
    assert (2, "changed", 1.5) in read_rows(filled)


def test_an_attempt_that_committed_and_then_failed_is_not_repeated(
    spark: SparkSession, filled: DeltaSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = opened(spark, filled, rows(spark, *FIRST))
    merge = SmallMerge._merge

    def commit_and_fail(*arguments: object) -> None:
        merge(*arguments)  # type: ignore[arg-type]
        raise OSError("no answer")

    monkeypatch.setattr(SmallMerge, "_merge", commit_and_fail)
    writer.write(rows(spark, *SECOND), 1)

    table = DeltaTable(str(filled.path))
    assert table.version() == 1
    assert json.loads(table.history(1)[0]["userMetadata"])["batch_id"] == 1


def test_keys_at_the_ends_of_shortened_bounds_are_found(spark: SparkSession, tmp_path: Path) -> None:
    """Spark shortens the bounds of a text to 32 characters, and those of a time to milliseconds."""
    sink = DeltaSink.model_validate({"path": str(tmp_path / "t"), "merge_on": ["name", "at"]})
    texts = [f"{'x' * 40}{end}" for end in ("a", "z", "\U0010ffff")]
    times = ["1969-12-31 23:59:59.999", "2026-01-01 00:00:00.123"]
    keys = [(text, time) for text in texts for time in times]

    def frame(number: int) -> DataFrame:
        rows = create_frame(spark, [(*key, number) for key in keys], "name STRING, at STRING, number INT")
        return rows.selectExpr("name", "CAST(at AS TIMESTAMP) AS at", "number").repartition(6, "name", "at")

    writer = opened(spark, sink, frame(0))
    writer.write(frame(0), 0)

    assert writer.write(frame(1), 1).way == BY_DELTA_RS
    found = spark.read.format("delta").load(str(sink.path)).select("number").collect()
    assert [row.number for row in found] == [1] * len(keys)


def test_a_batch_that_no_attempt_has_surely_written_is_not_told_as_written(
    spark: SparkSession, filled: DeltaSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = opened(spark, filled, rows(spark, *FIRST))
    monkeypatch.setattr(DeltaWriter, "_commit", lambda *_: MergeOutcome.UNKNOWN)

    with pytest.raises(Outage, match="batch 1 may or may not be written"):
        writer.write(rows(spark, *SECOND), 1)

    assert DeltaTable(str(filled.path)).version() == 0
