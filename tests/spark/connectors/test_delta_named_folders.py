"""Sinks and dead letters in Delta tables whose folders delta-rs and Spark read differently."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from local_frames import create_frame
from millstream.connectors.api.values.dead_letter_rows import SCHEMA
from millstream.connectors.api.writer import SinkIdentity
from millstream.connectors.delta.commit.maintenance import TableMaintenance
from millstream.connectors.delta.dead_letter_table import read_rows
from millstream.connectors.delta.dead_letter_writer import DeltaDeadLetterWriter
from millstream.connectors.delta.sink import DeltaSink
from millstream.connectors.delta.writer import DeltaWriter
from millstream.spec.location import Location
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("interpreted")


def merge(spark: SparkSession, folder: Path, *batches: dict[str, int]) -> list[str]:
    """Merge batches of rows into a table; how each was written."""
    sink = DeltaSink.model_validate({"path": str(folder), "merge_on": ["id"]})
    writer = DeltaWriter(sink, SinkIdentity("shop", "orders", "an-id", "delta:o", OutputMode.UPDATE))
    frames = [create_frame(spark, list(batch.items()), "id string, n int") for batch in batches]
    writer.open(spark, frames[0].schema)
    return [writer.write(frame, number).way for number, frame in enumerate(frames)]


def rows(spark: SparkSession, folder: Path) -> dict[str, int]:
    return {row.id: row.n for row in spark.read.format("delta").load(str(folder)).collect()}


def test_a_small_batch_is_not_merged_into_the_table_whose_name_delta_rs_reads(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    maintained: list[object] = []
    monkeypatch.setattr(TableMaintenance, "run", lambda *_: maintained.append(1))
    monkeypatch.setattr("millstream.connectors.delta.commit.maintenance.INTERVAL", 1)
    merge(spark, tmp_path / "a b", {"other": 7})

    assert merge(spark, tmp_path / "a%20b", {"a": 1}, {"a": 2, "b": 2}) == ["", ""]

    assert rows(spark, tmp_path / "a%20b") == {"a": 2, "b": 2}
    assert rows(spark, tmp_path / "a b") == {"other": 7}
    assert maintained == []


@pytest.mark.parametrize("name", ["a b", "x[1]", "a#b+c", "grün"])
def test_small_batches_are_merged_by_delta_rs_in_folders_with_these_names(
    name: str, spark: SparkSession, tmp_path: Path
) -> None:
    assert merge(spark, tmp_path / name, {"a": 1}, {"a": 2, "b": 2}) == ["", "delta-rs"]

    assert rows(spark, tmp_path / name) == {"a": 2, "b": 2}
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", ["x[1]", "a%20b"])
def test_dead_letters_are_stored_in_folders_in_which_delta_rs_cannot_append(
    name: str, spark: SparkSession, tmp_path: Path
) -> None:
    folder = tmp_path / name
    identity = SinkIdentity("shop", "copy", "an-id", "dead_letters", OutputMode.APPEND)
    writer = DeltaDeadLetterWriter(Location(folder), identity)
    for batch_id in (0, 1, 1):
        dead_letter = {"query": "copy", "source": "orders", "value": b"{", "reason": "the value is not JSON"}
        dead_letter |= {"batch_id": batch_id, "at": datetime(2026, 1, 1, tzinfo=UTC)}
        writer.keep_rows(spark, pa.Table.from_pylist([dead_letter], schema=SCHEMA), batch_id)

    stored = spark.read.format("delta").load(str(folder)).collect()
    assert sorted(row.batch_id for row in stored) == [0, 1]
    assert [path.name for path in tmp_path.iterdir()] == [name]
    if "%" not in name:
        assert sorted(letter.batch_id for letter in read_rows(Location(folder))) == [0, 1]
