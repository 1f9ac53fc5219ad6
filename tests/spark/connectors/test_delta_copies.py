"""Runs from a checkpoint and its copy at one Delta table: a batch that is passed over is not taken for written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from delta_tables import read_rows
from millstream.connectors.api.batch_ledger import BatchMetadata
from millstream.connectors.api.writer import SinkIdentity, WriteResult
from millstream.connectors.delta.sink import DeltaSink
from millstream.connectors.delta.writer import DeltaWriter
from millstream.diagnostics.failure import CheckpointMismatch
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.usefixtures("interpreted", "small_batches")

CDC = {"keys": ["id"], "sequence_by": "at"}
# More than a look at the newest commits finds: that was five once.
OTHERS = 6

WAYS = {
    "append": (OutputMode.APPEND, {}),
    "append without a checksum": (OutputMode.APPEND, {}),
    "complete": (OutputMode.COMPLETE, {}),
    "merge": (OutputMode.UPDATE, {"merge_on": ["id"]}),
    "cdc": (OutputMode.APPEND, {"cdc": CDC}),
}


def batch(spark: SparkSession, first: int) -> DataFrame:
    return spark.range(first, first + 3).selectExpr("id", "id AS at")


def run_of(spark: SparkSession, sink: DeltaSink, mode: OutputMode, planned: int) -> DeltaWriter:
    """A run of the one query, which planned its batches at a time of its own."""
    delta_writer = DeltaWriter(sink, SinkIdentity("shop", "orders", "one-checkpoint", "delta:o", mode))
    delta_writer.note = lambda number: BatchMetadata((f'{{"end": {number}}}',), planned)
    delta_writer.open(spark, batch(spark, 0).schema)
    return delta_writer


def others_commit(spark: SparkSession, sink: DeltaSink) -> None:
    for number in range(OTHERS):
        spark.sql(f"ALTER TABLE {sink.place} SET TBLPROPERTIES ('touched' = '{number}')")


@pytest.mark.parametrize("way", WAYS)
def test_a_batch_of_a_copied_checkpoint_that_delta_passes_over_ends_the_query(
    way: str, spark: SparkSession, tmp_path: Path
) -> None:
    mode, settings = WAYS[way]
    sink = DeltaSink.model_validate({"path": str(tmp_path / "t"), **settings})
    run_of(spark, sink, mode, planned=1).write(batch(spark, 0), 0)
    copy, same = run_of(spark, sink, mode, planned=2), run_of(spark, sink, mode, planned=1)
    delta_writer = run_of(spark, sink, mode, planned=1)
    for number in (1, 2):
        delta_writer.write(batch(spark, number * 10), number)
    others_commit(spark, sink)
    if "checksum" in way:
        for file in (tmp_path / "t/_delta_log").glob("*.crc"):
            file.unlink()
        spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()  # type: ignore[union-attr]
    before = rows(sink)

    with pytest.raises(
        CheckpointMismatch, match="already has a batch 1 of query 'orders' with other records"
    ):
        copy.write(batch(spark, 100), 1)
    replayed = same.write(batch(spark, 10), 1)

    assert replayed == WriteResult(rows=0, is_skipped=True)
    assert rows(sink) == before


def test_a_merge_that_changes_nothing_is_told_as_written(spark: SparkSession, tmp_path: Path) -> None:
    sink = DeltaSink.model_validate(
        {"path": str(tmp_path / "t"), "merge_on": ["id"], "delete_when": "at > 100"}
    )
    delta_writer = run_of(spark, sink, OutputMode.UPDATE, planned=1)
    delta_writer.write(batch(spark, 0), 0)

    for number, low in ((1, 200), (2, 10)):
        result = delta_writer.write(batch(spark, low), number)
        assert (result.rows, result.is_skipped) == (3, False)


def rows(sink: DeltaSink) -> list[Any]:
    return sorted(read_rows(str(sink.path)))
