"""Appends to a Delta table whose number is looked up in the commit's checksum."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from delta_tables import read_rows
from millstream.connectors.api.dead_letters import FEW
from millstream.connectors.api.writer import SinkIdentity
from millstream.connectors.delta.commit.log import read_snapshot
from millstream.connectors.delta.commit.numbered_append import NumberedAppend
from millstream.connectors.delta.dead_letter_writer import DeltaDeadLetterWriter
from millstream.connectors.delta.errors import error_condition, is_concurrent_write
from millstream.connectors.delta.sink import DeltaSink
from millstream.connectors.delta.writer import DeltaWriter
from millstream.diagnostics.failure import CheckpointMismatch, MillstreamError
from millstream.spec.location import Location
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession


def opened(spark: SparkSession, folder: Path, query_id: str = "one", **more: object) -> DeltaWriter:
    sink = DeltaSink.model_validate({"path": str(folder), **more})
    writer = DeltaWriter(sink, SinkIdentity("shop", "orders", query_id, "delta:o", OutputMode.APPEND))
    writer.open(spark, rows(spark, 0).schema)
    return writer


def rows(spark: SparkSession, batch: int) -> DataFrame:
    return spark.range(batch * 10, batch * 10 + 10)


def begin_append(frame: DataFrame, folder: Path, writer: str, batch: int) -> NumberedAppend:
    return NumberedAppend(
        frame, str(folder), {"txnAppId": writer, "txnVersion": str(batch), "userMetadata": "{}"}
    )


def read_numbers(folder: Path) -> list[int]:
    return sorted(id_ for (id_,) in read_rows(folder, "id"))


def count_jobs(spark: SparkSession, action: Callable[[], object]) -> int:
    """The Spark jobs that an action takes."""
    scheduler = spark.sparkContext._jsc.sc().dagScheduler()  # type: ignore[attr-defined]
    before = int(scheduler.numTotalJobs())
    action()
    return int(scheduler.numTotalJobs()) - before


def test_an_append_takes_no_more_jobs_than_one_without_a_number(spark: SparkSession, tmp_path: Path) -> None:
    writer = opened(spark, tmp_path / "t")
    plain = rows(spark, 0).write.format("delta").mode("append")
    plain.save(str(tmp_path / "plain"))
    for batch in range(2):
        writer.write(rows(spark, batch), batch)

    actual = count_jobs(spark, lambda: writer.write(rows(spark, 2), 2))

    assert actual == count_jobs(spark, lambda: plain.save(str(tmp_path / "plain"))) > 0
    assert read_numbers(tmp_path / "t") == list(range(30))


def test_a_start_finds_its_last_batch_in_the_checksum_and_takes_no_job(
    spark: SparkSession, tmp_path: Path
) -> None:
    first = opened(spark, tmp_path / "t")
    for batch in range(2):
        first.write(rows(spark, batch), batch)
    found = []

    def start() -> None:
        writer = opened(spark, tmp_path / "t")
        found.append(
            (writer.last_committed_batches(spark)[0].batch, writer.has_batch(1), writer.has_batch(2))
        )

    assert (count_jobs(spark, start), found) == (0, [(1, True, False)])


def test_of_two_appends_of_one_batch_that_began_at_once_one_conflicts(
    spark: SparkSession, tmp_path: Path
) -> None:
    opened(spark, tmp_path / "t").write(rows(spark, 0), 0)
    first, second = (begin_append(rows(spark, 1), tmp_path / "t", "w", 1) for _ in range(2))
    first.commit()

    with pytest.raises(Exception, match="DELTA_CONCURRENT_TRANSACTION") as error:
        second.commit()

    assert is_concurrent_write(error_condition(error.value))
    begin_append(rows(spark, 1), tmp_path / "t", "w", 1).commit()
    assert read_numbers(tmp_path / "t") == list(range(20))


def test_appends_of_two_writers_that_began_at_once_are_both_there(
    spark: SparkSession, tmp_path: Path
) -> None:
    opened(spark, tmp_path / "t").write(rows(spark, 0), 0)
    first, second = (begin_append(rows(spark, batch), tmp_path / "t", f"w{batch}", 0) for batch in (1, 2))

    first.commit()
    second.commit()

    assert read_numbers(tmp_path / "t") == list(range(30))
    assert [
        begin_append(rows(spark, 3), tmp_path / "t", writer, 9).last() for writer in ("w1", "w2", "w3")
    ] == [
        0,
        0,
        -1,
    ]


def test_a_batch_that_the_log_has_is_not_appended_by_a_driver_that_knew_less(
    spark: SparkSession, tmp_path: Path
) -> None:
    stale = opened(spark, tmp_path / "t")
    stale.write(rows(spark, 0), 0)
    other = opened(spark, tmp_path / "t")
    for batch in (1, 2):
        other.write(rows(spark, batch), batch)

    stale.write(rows(spark, 1), 1)

    assert read_numbers(tmp_path / "t") == list(range(30))


def test_where_no_checksum_tells_the_number_the_table_is_asked(spark: SparkSession, tmp_path: Path) -> None:
    writer = opened(spark, tmp_path / "t")
    for batch in range(2):
        writer.write(rows(spark, batch), batch)
    for file in (tmp_path / "t/_delta_log").glob("*.crc"):
        file.unlink()
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()  # type: ignore[union-attr]
    assert begin_append(rows(spark, 1), tmp_path / "t", writer.identity.key, 1).last() is None

    stale = opened(spark, tmp_path / "t")
    stale._last = 0  # as a driver that looked before batch 1 was written
    stale.write(rows(spark, 1), 1)
    opened(spark, tmp_path / "t").write(rows(spark, 2), 2)

    assert read_numbers(tmp_path / "t") == list(range(30))


@pytest.mark.parametrize("kind", ["path", "table"])
def test_a_table_that_was_deleted_under_its_query_is_not_created_again(
    kind: str, spark: SparkSession, tmp_path: Path
) -> None:
    place = {"path": str(tmp_path / "t")} if kind == "path" else {"table": "deleted_under_its_query"}
    sink = DeltaSink.model_validate(place)
    writer = DeltaWriter(sink, SinkIdentity("shop", "orders", "one", "delta:o", OutputMode.APPEND))
    writer.open(spark, rows(spark, 0).schema)
    for batch in range(2):
        writer.write(rows(spark, batch), batch)
    if kind == "path":
        shutil.rmtree(tmp_path / "t")
    else:
        spark.sql("DROP TABLE deleted_under_its_query")

    with pytest.raises(CheckpointMismatch, match="was deleted while query 'orders' was running"):
        writer.write(rows(spark, 2), 2)

    assert read_snapshot(spark, sink).version < 0


def test_a_deleted_table_of_dead_letters_is_created_again(spark: SparkSession, tmp_path: Path) -> None:
    identity = SinkIdentity("shop", "orders", "one", "dead_letters", OutputMode.APPEND)
    writer = DeltaDeadLetterWriter(Location(tmp_path / "t"), identity)
    writer.keep(rows(spark, 0), 0, FEW)
    shutil.rmtree(tmp_path / "t")

    writer.keep(rows(spark, 1), 1, FEW)

    assert read_numbers(tmp_path / "t") == list(range(10, 20))


def test_a_column_is_added_where_the_sink_says_so(spark: SparkSession, tmp_path: Path) -> None:
    for more, batch in (({}, 0), ({"merge_schema": True}, 1)):
        frame = rows(spark, batch).selectExpr("id", *(["1 AS more"] if more else []))
        opened(spark, tmp_path / "t", **more).write(frame, batch)

    assert [more for (more,) in read_rows(tmp_path / "t", "more")].count(1) == 10


def test_a_column_of_another_type_is_told(spark: SparkSession, tmp_path: Path) -> None:
    opened(spark, tmp_path / "t").write(rows(spark, 0), 0)

    with pytest.raises(MillstreamError, match="have other types"):
        opened(spark, tmp_path / "t").write(spark.sql("SELECT named_struct('a', 1) AS id"), 1)

    assert read_numbers(tmp_path / "t") == list(range(10))
