"""Files in a folder for each batch: what readers see, what a crash leaves, and two drivers at one batch."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pandas
import pyarrow.dataset
import pytest

from millstream.connectors.api.writer import SinkIdentity
from millstream.connectors.files.layouts import LEDGER, ByBatch
from millstream.connectors.files.sink import ParquetSink
from millstream.connectors.files.sink_folder import HadoopPlace, LocalPlace
from millstream.connectors.files.writer import FilesWriter
from millstream.diagnostics.failure import CheckpointError, NotReady
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession


class Died(Exception):
    """The driver is gone."""


def die(*_: object) -> None:
    raise Died


def batch(spark: SparkSession, first: int, note: str = "as it was") -> DataFrame:
    rows = [(number, f"2026-01-0{1 + number % 3}", note) for number in range(first, first + 10)]
    return spark.createDataFrame(rows, "id BIGINT, day STRING, note STRING").repartition(2)


def opened(spark: SparkSession, sink: ParquetSink, query_id: str = "3f0c") -> FilesWriter:
    writer = FilesWriter(sink, SinkIdentity("shop", "orders", query_id, "parquet:o", OutputMode.UPDATE))
    writer.open(spark, batch(spark, 0).schema)
    return writer


def ids(folder: Path) -> list[int]:
    """What a reader without Spark finds."""
    table = pyarrow.dataset.dataset(str(folder), format="parquet", partitioning="hive").to_table(["id"])
    return sorted(table.column("id").to_pylist())


@pytest.fixture(params=[(), ("day",)], ids=["flat", "divided"])
def sink(request: pytest.FixtureRequest, tmp_path: Path) -> ParquetSink:
    return ParquetSink(path=str(tmp_path / "out"), layout="by_batch", partition_by=request.param)


def test_spark_pyarrow_and_pandas_read_it(spark: SparkSession, sink: ParquetSink, tmp_path: Path) -> None:
    writer = opened(spark, sink)
    writer.write(batch(spark, 0), 0)
    writer.write(batch(spark, 10), 1)

    read = spark.read.parquet(str(sink.path))
    frame = pandas.read_parquet(sink.path)

    assert set(read.columns) == set(frame.columns) == {"id", "day", "note", "batch"}
    assert sorted(row.id for row in read.collect()) == sorted(frame["id"]) == list(range(20))
    assert ids(tmp_path / "out") == list(range(20))


def test_the_last_version_of_a_row_is_that_of_the_last_batch(spark: SparkSession, sink: ParquetSink) -> None:
    writer = opened(spark, sink)
    writer.write(batch(spark, 0, "first"), 9)
    writer.write(batch(spark, 5, "second"), 10)

    last = spark.read.parquet(str(sink.path)).selectExpr(
        "id", "note", "row_number() OVER (PARTITION BY id ORDER BY batch DESC) AS version"
    )

    got = {row.id: row.note for row in last.where("version = 1").collect()}
    assert got == {number: "first" if number < 5 else "second" for number in range(15)}


def test_a_batch_that_dies_before_its_rename_shows_nothing_and_comes_whole(
    spark: SparkSession, sink: ParquetSink, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    opened(spark, sink).write(batch(spark, 0), 0)
    with monkeypatch.context() as patch:
        patch.setattr(LocalPlace, "publish", die)
        with pytest.raises(Died):
            opened(spark, sink).write(batch(spark, 10), 1)
    assert ids(tmp_path / "out") == list(range(10))

    files_writer = opened(spark, sink)
    assert not files_writer.has_batch(1)
    files_writer.write(batch(spark, 10), 1)

    assert ids(tmp_path / "out") == list(range(20))
    assert list((tmp_path / "out" / "_millstream" / "staging").iterdir()) == []


def test_of_two_drivers_at_one_batch_the_first_holds(
    spark: SparkSession, sink: ParquetSink, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    slow, quick = opened(spark, sink), opened(spark, sink)
    real = ByBatch.commit

    def overtaken(self: ByBatch, *given: Any) -> bool:
        with monkeypatch.context() as patch:
            patch.setattr(ByBatch, "commit", real)
            quick.write(batch(spark, 0), 0)
        return real(self, *given)

    monkeypatch.setattr(ByBatch, "commit", overtaken)
    write_result = slow.write(batch(spark, 0), 0)

    assert write_result.is_skipped
    assert ids(tmp_path / "out") == list(range(10))


def test_an_empty_batch_is_remembered(spark: SparkSession, sink: ParquetSink, tmp_path: Path) -> None:
    opened(spark, sink).write(batch(spark, 0).limit(0), 4)

    files_writer = opened(spark, sink)

    assert files_writer.has_batch(4)
    assert not files_writer.has_batch(5)
    assert list((tmp_path / "out").rglob("*.parquet")) == []


def test_a_folder_of_moved_files_is_refused(spark: SparkSession, sink: ParquetSink) -> None:
    opened(spark, sink.model_copy(update={"layout": "moved"})).write(batch(spark, 0), 0)

    with pytest.raises(NotReady, match="outside of a batch folder"):
        opened(spark, sink)


def test_moved_files_are_refused_beside_folders_of_batches(spark: SparkSession, sink: ParquetSink) -> None:
    opened(spark, sink).write(batch(spark, 0), 0)

    with pytest.raises(NotReady, match="written with layout: by_batch"):
        opened(spark, sink.model_copy(update={"layout": "moved"}))


def test_a_column_named_batch_is_refused(spark: SparkSession, sink: ParquetSink) -> None:
    writer = opened(spark, sink)

    with pytest.raises(NotReady, match="column 'batch'"):
        writer.open(spark, batch(spark, 0).withColumnRenamed("note", "Batch").schema)


def test_anothers_folder_is_refused(spark: SparkSession, sink: ParquetSink, tmp_path: Path) -> None:
    writer = opened(spark, sink)
    writer.write(batch(spark, 0), 0)
    ledger = next((tmp_path / "out").rglob(LEDGER))
    ledger.write_text(json.dumps({"owner": "somebody/parquet:o"}))

    with pytest.raises(CheckpointError, match="belongs to somebody"):
        opened(spark, sink).has_batch(0)


def test_any_file_system_of_hadoop_renames_a_folder_once(
    spark: SparkSession, sink: ParquetSink, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def through_hadoop(session: Any, location: str) -> HadoopPlace:
        jvm = session._jvm
        path = jvm.org.apache.hadoop.fs.Path(location)
        return HadoopPlace(jvm, path.getFileSystem(session._jsc.hadoopConfiguration()), path)

    monkeypatch.setattr("millstream.connectors.files.writer.open_folder", through_hadoop)
    writer = opened(spark, sink)
    writer.write(batch(spark, 0), 0)
    with monkeypatch.context() as patch:
        # A driver that has not seen the other's commit.
        patch.setattr(ByBatch, "finish", lambda *_: False)
        write_result = writer.write(batch(spark, 0), 0)

    assert write_result.is_skipped
    assert ids(tmp_path / "out") == list(range(10))
    assert opened(spark, sink).has_batch(0)


def test_a_file_system_that_copies_folders_is_refused(
    spark: SparkSession, sink: ParquetSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LocalPlace, "renames_folders", False)

    with pytest.raises(NotReady, match="renames folders atomically"):
        opened(spark, sink)
