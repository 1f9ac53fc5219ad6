"""Files and folders of a sink or source whose names Spark could take for patterns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millstream.connectors.api.values.offsets import OffsetRange
from millstream.connectors.delta.sink import DeltaSink
from millstream.connectors.files.sink import ParquetSink
from millstream.connectors.files.source import JsonSource
from millstream.spec.location import Location
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.connectors.api.sink import Sink

NAMES = ["[1]", "{a,b}", "a?b", "a*b"]


@pytest.mark.parametrize("name", NAMES)
def test_the_files_of_a_sink_are_found_in_a_folder_whose_name_could_be_a_pattern(
    name: str, spark: SparkSession, tmp_path: Path
) -> None:
    frame = spark.range(3)
    frame.write.parquet(str(tmp_path / name))
    spark.range(10, 13).write.parquet(str(tmp_path / "axb"))

    stored = ParquetSink(path=Location(tmp_path / name)).read_all(spark, frame.schema, OutputMode.APPEND)

    assert stored is not None
    assert sorted(row.id for row in stored.collect()) == [0, 1, 2]


@pytest.mark.parametrize("kind", [DeltaSink, ParquetSink])
def test_columns_of_a_sink_may_have_names_that_must_be_quoted(
    kind: type[Sink], spark: SparkSession, tmp_path: Path
) -> None:
    frame = spark.range(3).withColumnRenamed("id", "a.b" if kind is DeltaSink else "a.`b")
    frame.write.format(kind.kind).save(str(tmp_path / "t"))

    sink = kind.model_validate({"path": str(tmp_path / "t")})
    stored = sink.read_all(spark, frame.schema, OutputMode.APPEND)

    assert stored is not None
    assert stored.columns == frame.columns
    assert sorted(row[0] for row in stored.collect()) == [0, 1, 2]


@pytest.mark.parametrize("name", NAMES)
def test_a_batch_is_read_again_from_a_file_whose_name_could_be_a_pattern(
    name: str, spark: SparkSession, tmp_path: Path
) -> None:
    file = tmp_path / f"{name}.json"
    file.write_text('{"id": "a"}\n')
    (tmp_path / "axb.json").write_text('{"id": "another batch"}\n')
    source = JsonSource(path=Location(tmp_path))

    rows = source.read_range(spark, OffsetRange(None, "0", (file.as_uri(),)), "id string")

    assert rows is not None
    assert [row.id for row in rows.collect()] == ["a"]
