"""What every source kind must say of itself, and that reading gives what it says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pydantic import ValidationError

from millstream.connectors import registry
from millstream.spec.field_docs import with_field_docs

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.connectors.api.source import Source

pytestmark = pytest.mark.parametrize("kind", sorted(registry.sources()))

COLUMNS = "k STRING, v STRING"
ROWS = [("a", "1"), ("b", None)]


# What makes its rows itself, or has them on a server.
UNFILLED = {"kafka", "rate", "rate_micro_batch", "socket"}


def create_source(kind: str, folder: Path) -> Source:
    """The kind with settings that need no server."""
    settings = {
        "kafka": {"bootstrap_servers": ["127.0.0.1:1"], "subscribe": "clicks"},
        "rate": {"rows_per_second": 1},
        "rate_micro_batch": {"rows_per_batch": 2},
        "socket": {"port": 1},
        "table": {"name": f"t_{folder.name}"},
    }.get(kind, {"path": str(folder / "data")})
    return registry.sources()[kind].model_validate(settings)


def filled(kind: str, folder: Path, spark: SparkSession) -> Source:
    """The kind with two rows to read; skips what makes its rows itself or has them on a server."""
    if kind in UNFILLED:
        pytest.skip("has no folder to fill")
    frame = spark.createDataFrame(ROWS, COLUMNS)
    shaped = frame.selectExpr("k AS value") if kind == "text" else frame
    if kind == "table":
        shaped.write.format("parquet").option("path", str(folder / "data")).saveAsTable(f"t_{folder.name}")
        return create_source(kind, folder)
    shaped.coalesce(1).write.format(kind).save(str(folder / "data"))
    return create_source(kind, folder)


def test_its_main_field_is_one_of_its_fields(kind: str) -> None:
    assert registry.sources()[kind].main in registry.sources()[kind].model_fields


def test_it_can_be_read_as_a_stream_or_as_a_table(kind: str) -> None:
    assert registry.sources()[kind].can_stream or registry.sources()[kind].can_read_once


def test_its_columns_are_ddl_that_spark_reads(kind: str, spark: SparkSession) -> None:
    declared = registry.sources()[kind].columns
    if declared is None:
        pytest.skip("the spec's schema says")

    assert spark.createDataFrame([], declared).columns


def test_every_field_is_described(kind: str) -> None:
    fields = with_field_docs(registry.sources()[kind]).model_fields

    assert [name for name, field in fields.items() if not field.description] == []


def test_an_unknown_setting_is_refused(kind: str, tmp_path: Path) -> None:
    settings = {**create_source(kind, tmp_path).model_dump(exclude_unset=True), "no_such_setting": 1}

    with pytest.raises(ValidationError):
        registry.sources()[kind].model_validate(settings)


def test_plain_settings_have_no_problem(kind: str, tmp_path: Path) -> None:
    assert create_source(kind, tmp_path).problems() == []


def test_it_names_itself_in_identity_and_description(kind: str, tmp_path: Path) -> None:
    source = create_source(kind, tmp_path)

    assert source.identity()["kind"] == kind
    assert kind in source.describe()


def test_a_stream_of_it_has_the_declared_columns(kind: str, tmp_path: Path, spark: SparkSession) -> None:
    source = create_source(kind, tmp_path) if kind in UNFILLED else filled(kind, tmp_path, spark)
    declared = source.columns or COLUMNS

    frame = source.read(spark, static=False, schema=None if source.columns else COLUMNS)

    assert frame.isStreaming
    expected = {(field.name, field.dataType) for field in spark.createDataFrame([], declared).schema}
    assert expected <= {(field.name, field.dataType) for field in frame.schema}


def test_a_table_of_it_gives_the_rows_that_are_there(kind: str, tmp_path: Path, spark: SparkSession) -> None:
    if not registry.sources()[kind].can_read_once:
        pytest.skip("is a stream alone")
    source = filled(kind, tmp_path, spark)

    frame = source.read(spark, static=True, schema=None if source.columns else COLUMNS)

    assert not frame.isStreaming
    names = ["value"] if kind == "text" else ["k", "v"]
    rows = [row[: len(names)] for row in ROWS]
    assert sorted(map(tuple, frame.select(*names).collect()), key=repr) == sorted(rows, key=repr)
