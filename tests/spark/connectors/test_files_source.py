"""The sources of files: rows, malformed rows, and where each stands."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException

from millstream.checkpoint import file_source_log
from millstream.connectors.api.values.offsets import OffsetRange
from millstream.connectors.files.source import CORRUPT, CsvSource, JsonSource, ParquetSource, TextSource
from millstream.diagnostics.failure import NotReady

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from millstream.connectors.files.base_source import FilesSource

SCHEMA = "id INT, name STRING"
GOOD_AND_BAD = {
    "json": '{"id": 1, "name": "ann"}\n{"id": "x", "name": "bob"}\n{torn\n',
    "csv": "1,ann\nx,bob\n3\n",
}


def source(form: str, folder: Path) -> FilesSource:
    folder.mkdir(exist_ok=True)
    (folder / f"one.{form}").write_text(GOOD_AND_BAD[form])
    return {"json": JsonSource, "csv": CsvSource}[form](path=str(folder))


def streamed(frame: DataFrame, checkpoint: Path) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    query = (
        frame.writeStream.trigger(availableNow=True)
        .option("checkpointLocation", str(checkpoint))
        .foreachBatch(lambda batch, _: rows.extend(tuple(row) for row in batch.collect()))
        .start()
    )
    query.awaitTermination()
    return rows


@pytest.mark.parametrize("form", ["json", "csv"])
def test_a_malformed_row_keeps_its_text_and_its_file(spark: SparkSession, tmp_path: Path, form: str) -> None:
    rows = source(form, tmp_path / "in").read(spark, static=True, schema=SCHEMA).collect()

    assert [row[CORRUPT] for row in rows] == [None, *GOOD_AND_BAD[form].splitlines()[1:]]
    assert all(row._file.endswith(f"one.{form}") for row in rows)


@pytest.mark.parametrize("form", ["json", "csv"])
def test_a_row_is_malformed_whatever_columns_a_query_reads(
    spark: SparkSession, tmp_path: Path, form: str
) -> None:
    frame = source(form, tmp_path / "in").read(spark, static=True, schema=SCHEMA)

    assert frame.where(f"{CORRUPT} IS NULL").selectExpr("count(*)").first()[0] == 1
    assert frame.where(f"{CORRUPT} IS NOT NULL").select("name").count() == 2


@pytest.mark.parametrize("form", ["json", "csv"])
def test_a_stream_tells_malformed_rows_too(
    spark: SparkSession, tmp_path: Path, checkpoint: Path, form: str
) -> None:
    frame = source(form, tmp_path / "in").read(spark, static=False, schema=SCHEMA)

    rows = streamed(frame.selectExpr(f"{CORRUPT} IS NULL"), checkpoint)

    assert sorted(rows) == [(False,), (False,), (True,)]


def test_columns_of_a_csv_file_in_another_order_are_not_swapped(
    spark: SparkSession, tmp_path: Path, checkpoint: Path
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "one.csv").write_text("id,name\n1,ann\nx,bob\n")
    csv_source = CsvSource(path=str(tmp_path / "in"), header=True)

    rows = streamed(csv_source.read(spark, static=False, schema=SCHEMA).select("name", CORRUPT), checkpoint)
    (tmp_path / "in" / "two.csv").write_text("name,id\n2,3\n")

    assert sorted(rows, key=str) == [("ann", None), ("bob", "x,bob")]
    with pytest.raises(PySparkException, match="CSV header does not conform to the schema"):
        streamed(csv_source.read(spark, static=False, schema=SCHEMA), checkpoint)
    by_position = CsvSource(path=str(tmp_path / "in"), header=True, options={"enforceSchema": True})
    frame = by_position.read(spark, static=False, schema=SCHEMA).select("id", "name")
    assert streamed(frame, checkpoint) == [(2, "3")]


def test_a_table_without_a_schema_has_what_its_files_say(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(3).write.parquet(str(tmp_path / "in"))

    frame = ParquetSource(path=str(tmp_path / "in")).read(spark, static=True, schema=None)

    assert (frame.columns, frame.count()) == (["id"], 3)


def test_a_stream_takes_so_many_files_a_batch(spark: SparkSession, tmp_path: Path, checkpoint: Path) -> None:
    for name in "abc":
        (tmp_path / f"{name}.txt").write_text(name)
    text_source = TextSource(path=str(tmp_path), max_files_per_trigger=1, path_glob_filter="*.txt")

    batches: list[int] = []
    query = (
        text_source.read(spark, static=False, schema=None)
        .writeStream.trigger(availableNow=True)
        .option("checkpointLocation", str(checkpoint))
        .foreachBatch(lambda batch, _: batches.append(batch.count()))
        .start()
    )
    query.awaitTermination()

    assert batches == [1, 1, 1]


def test_the_latest_file_comes_first_when_it_is_asked_for(
    spark: SparkSession, tmp_path: Path, checkpoint: Path
) -> None:
    for number, name in enumerate("abc"):
        (tmp_path / f"{name}.txt").write_text(name)
        os.utime(tmp_path / f"{name}.txt", (1_767_225_600 + number,) * 2)
    text_source = TextSource(
        path=str(tmp_path), path_glob_filter="*.txt", max_files_per_trigger=1, latest_first=True
    )

    rows = streamed(text_source.read(spark, static=False, schema=None).select("value"), checkpoint)

    assert rows == [("c",), ("b",), ("a",)]


def test_each_batch_can_be_read_again_by_the_checkpoints_own_list_of_files(
    spark: SparkSession, tmp_path: Path, checkpoint: Path
) -> None:
    folder = tmp_path / "two words"
    days = spark.range(4).selectExpr("id", "concat('12:0', id % 2) AS day").repartition(1)
    days.write.partitionBy("day").parquet(str(folder))
    parquet_source = ParquetSource(path=str(folder), max_files_per_trigger=1)
    schema = "id BIGINT, day STRING"
    visited = streamed(parquet_source.read(spark, static=False, schema=schema), checkpoint)

    second = []
    for batch in range(2):
        read = file_source_log.list_batch_files(checkpoint / "sources/0", batch - 1, batch)
        frame = parquet_source.read_range(spark, OffsetRange(None, "", read), schema)
        assert frame is not None
        second += [tuple(row) for row in frame.collect()]

    assert second == visited
    assert sorted(second) == [(0, "12:00"), (1, "12:01"), (2, "12:00"), (3, "12:01")]


def test_a_stream_of_a_folder_that_does_not_exist_yet_says_so(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(NotReady, match="does not exist yet"):
        JsonSource(path=str(tmp_path / "none")).read(spark, static=False, schema=SCHEMA)


def test_a_file_that_comes_late_with_an_old_time_is_read_unless_a_limit_is_set(
    spark: SparkSession, tmp_path: Path, checkpoint: Path
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()

    def rows(**settings: Any) -> list[Any]:
        limited = JsonSource.model_validate({"path": str(folder), **settings})
        actual = streamed(limited.read(spark, static=False, schema="id string"), checkpoint)
        return sorted(row[0] for row in actual)

    def write_file(name: str, days: int) -> None:
        (folder / f"{name}.json").write_text(json.dumps({"id": name}))
        os.utime(folder / f"{name}.json", (1_767_225_600 - days * 86_400,) * 2)

    write_file("newest", 0)
    assert rows() == ["newest"]
    write_file("older", 30)
    assert rows(max_file_age="7 days") == []
    write_file("oldest", 3000)
    assert rows() == ["older", "oldest"]
    assert rows() == []
