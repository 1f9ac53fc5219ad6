"""Parquet files that Arrow writes are to every reader those that Spark would have written."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow.parquet
import pytest

from millstream.connectors.files.arrow_files import ParquetFiles
from millstream.connectors.files.sink import ParquetSink
from small_batches import changed_settings

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

ROWS = """
SELECT * FROM VALUES
  (1, 'a', true, 1Y, 2S, 3L, 1.5F, double('NaN'), 12.34BD, 1234567890123.45BD, X'00FF', DATE'2026-01-01',
   TIMESTAMP'2026-01-01 00:00:00.000001Z', TIMESTAMP_NTZ'2026-01-01 00:00:00'),
  (2, 'x/y=%{ü}"', false, -1Y, -2S, -3L, float('NaN'), 7D, -0.01BD, 0BD, X'', DATE'1960-02-29',
   TIMESTAMP'1890-01-01 00:00:00Z', TIMESTAMP_NTZ'1700-01-01 00:00:00'),
  (3, '', null, null, null, null, null, null, null, null, null, null, null, null),
  (4, null, true, 127Y, 1S, 1L, 0F, -1D, 1BD, 1BD, X'01', DATE'2026-01-01', null, null)
AS t (number, text, flag, tiny, small, big, real, amount, price, total, raw, day, at, local)
"""
PARTITIONS = [(), ("text",), ("day", "flag"), ("tiny",)]


@pytest.fixture(autouse=True)
def _instants_in_microseconds(spark: SparkSession) -> Any:
    with changed_settings(spark, {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS"}):
        yield


@pytest.fixture
def rows(spark: SparkSession) -> DataFrame:
    return spark.sql(ROWS).coalesce(1)


def write_both(rows: DataFrame, folder: Path, **settings: Any) -> tuple[Path, Path]:
    """The folders in which Spark and Arrow have written the rows."""
    sink = ParquetSink(path=str(folder / "sink"), **settings)
    by_spark, by_arrow = folder / "spark", folder / "arrow"
    writer = rows.write.option("compression", sink.compression or "snappy")
    (writer.partitionBy(*sink.partition_by) if sink.partition_by else writer).parquet(str(by_spark))
    files = ParquetFiles.of(sink, rows.sparkSession, rows.schema)
    assert files is not None
    files.write(rows.toArrow(), by_arrow)
    return by_spark, by_arrow


def read(rows: DataFrame, folder: Path) -> tuple[Any, list[str]]:
    read = rows.sparkSession.read.parquet(str(folder))
    return read.schema, sorted(map(str, read.orderBy("number").collect()))


def folders(folder: Path) -> list[str]:
    return sorted({str(file.parent.relative_to(folder)) for file in folder.rglob("*.parquet")})


@pytest.mark.parametrize("partition_by", PARTITIONS, ids=" ".join)
def test_spark_reads_the_same_rows_from_the_same_folders(
    partition_by: tuple[str, ...], rows: DataFrame, tmp_path: Path
) -> None:
    by_spark, by_arrow = write_both(rows, tmp_path, partition_by=partition_by)

    assert folders(by_arrow) == folders(by_spark)
    assert read(rows, by_arrow) == read(rows, by_spark)


def test_the_columns_have_the_same_types_and_spark_s_own_entries(rows: DataFrame, tmp_path: Path) -> None:
    footers = [
        pyarrow.parquet.ParquetFile(next(folder.rglob("*.parquet"))) for folder in write_both(rows, tmp_path)
    ]

    columns = [
        [
            (column.name, column.physical_type, str(column.logical_type), column.max_definition_level)
            for column in map(footer.schema.column, range(len(footer.schema)))
        ]
        for footer in footers
    ]
    assert columns[0] == columns[1]
    by_spark, by_arrow = (footer.metadata.metadata for footer in footers)
    assert set(by_arrow) == set(by_spark)
    name = b"org.apache.spark.sql.parquet.row.metadata"
    assert json.loads(by_arrow[name]) == json.loads(by_spark[name])
    assert by_arrow[b"org.apache.spark.version"] == by_spark[b"org.apache.spark.version"]


def test_spark_finds_nan_as_the_greatest_number(rows: DataFrame, tmp_path: Path) -> None:
    for folder in write_both(rows, tmp_path):
        found = rows.sparkSession.read.parquet(str(folder)).where("amount > 100").select("number")
        assert [tuple(row) for row in found.collect()] == [(1,)]


@pytest.mark.parametrize("compression", ["gzip", "zstd", "none"])
def test_files_are_compressed_as_the_sink_says(compression: str, rows: DataFrame, tmp_path: Path) -> None:
    codecs = [
        pyarrow.parquet.read_metadata(next(folder.rglob("*.parquet"))).row_group(0).column(0).compression
        for folder in write_both(rows, tmp_path, compression=compression)
    ]

    assert codecs[0] == codecs[1]


def test_without_rows_there_is_a_folder_and_no_file(rows: DataFrame, tmp_path: Path) -> None:
    _, by_arrow = write_both(rows.where("number > 9"), tmp_path)

    assert list(by_arrow.iterdir()) == []


@pytest.mark.parametrize(
    ("columns", "settings", "conf"),
    [
        ("struct(number) AS pair", {}, {}),
        ("map(number, text) AS texts", {}, {}),
        ("*", {"options": {"parquet.block.size": 4096}}, {}),
        ("*", {"partition_by": ("amount",)}, {}),
        ("*", {"compression": "lz4"}, {}),
        ("*", {}, {"spark.sql.parquet.outputTimestampType": "INT96"}),
        ("*", {}, {"spark.sql.parquet.writeLegacyFormat": "true"}),
    ],
)
def test_what_only_spark_can_write_is_left_to_it(
    columns: str, settings: dict[str, Any], conf: dict[str, str], rows: DataFrame
) -> None:
    with changed_settings(rows.sparkSession, conf):
        schema = rows.selectExpr(columns).schema
        assert ParquetFiles.of(ParquetSink(path="x", **settings), rows.sparkSession, schema) is None
