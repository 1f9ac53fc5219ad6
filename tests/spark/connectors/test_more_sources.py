"""Sources that a first pipeline reads, and a table's changes, each through a query that runs."""

from __future__ import annotations

import socketserver
import threading
from typing import TYPE_CHECKING, Any

import pytest

from millstream.connectors.delta.source import DeltaSource
from millstream.connectors.rate_micro_batch.source import RateMicroBatchSource
from millstream.connectors.socket.source import SocketSource
from millstream.connectors.table.source import TableSource
from millstream.spec.location import Location

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, Row, SparkSession


def streamed(frame: DataFrame, checkpoint: Path, **trigger: Any) -> list[Row]:
    """All rows that a run of a stream gives until it has read what is there."""
    rows: list[Row] = []
    query = (
        frame.writeStream.foreachBatch(lambda batch, _: rows.extend(batch.collect()))
        .option("checkpointLocation", str(checkpoint))
        .trigger(**(trigger or {"availableNow": True}))
        .start()
    )
    assert query.awaitTermination(200)
    return rows


@pytest.fixture
def lines() -> Iterator[int]:
    """A server that sends two lines to whoever connects and keeps the connection; its port."""
    event = threading.Event()

    class Sends(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.sendall(b"to be or\nnot to be\n")
            event.wait(60)

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

    with Server(("127.0.0.1", 0), Sends) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        event.set()
        server.shutdown()


def test_a_socket_gives_its_lines_with_the_time(lines: int, spark: SparkSession, checkpoint: Path) -> None:
    frame = SocketSource(port=lines).read(spark, static=False, schema=None)
    rows: list[Row] = []
    got = threading.Event()

    def take(batch: DataFrame, _: int) -> None:
        rows.extend(batch.collect())
        if len(rows) == 2:
            got.set()

    query = frame.writeStream.foreachBatch(take).option("checkpointLocation", str(checkpoint)).start()
    assert got.wait(60)
    query.stop()

    assert sorted(row.value for row in rows) == ["not to be", "to be or"]
    assert all(row.timestamp for row in rows)


def test_batches_of_a_rate_are_equal_and_move_their_time_on(spark: SparkSession, checkpoint: Path) -> None:
    source = RateMicroBatchSource(rows_per_batch=3, advance_per_batch="1 minute", start_timestamp=0)
    frame = source.read(spark, static=False, schema=None).selectExpr("value", "unix_seconds(timestamp) AS at")
    batches: dict[int, list[tuple[int, int]]] = {}
    got = threading.Event()

    def take(batch: DataFrame, number: int) -> None:
        batches[number] = [(row["value"], row["at"]) for row in batch.collect()]
        if number == 1:
            got.set()

    query = frame.writeStream.foreachBatch(take).option("checkpointLocation", str(checkpoint)).start()
    assert got.wait(60)
    query.stop()

    assert sorted(batches[0]) == [(0, 0), (1, 0), (2, 0)]
    assert sorted(batches[1]) == [(3, 60), (4, 60), (5, 60)]


def test_a_change_feed_tells_updates_and_deletions(
    spark: SparkSession, tmp_path: Path, checkpoint: Path
) -> None:
    table = tmp_path / "orders"
    spark.sql(
        f"CREATE TABLE delta.`{table}` (id INT, amount INT) USING delta"
        " TBLPROPERTIES (delta.enableChangeDataFeed = true)"
    )
    spark.sql(f"INSERT INTO delta.`{table}` VALUES (1, 10), (2, 20)")
    spark.sql(f"UPDATE delta.`{table}` SET amount = 11 WHERE id = 1")
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id = 2")
    source = DeltaSource(path=Location(table), change_feed=True, starting_version=1)

    rows = streamed(source.read(spark, static=False, schema=None), checkpoint)

    assert sorted((row.id, row.amount, row._change_type, row._commit_version) for row in rows) == [
        (1, 10, "insert", 1),
        (1, 10, "update_preimage", 2),
        (1, 11, "update_postimage", 2),
        (2, 20, "delete", 3),
        (2, 20, "insert", 1),
    ]


def test_a_stream_of_a_table_may_begin_at_a_time(
    spark: SparkSession, tmp_path: Path, checkpoint: Path
) -> None:
    table = tmp_path / "orders"
    spark.range(3).write.format("delta").save(str(table))
    source = DeltaSource(path=Location(table), starting_timestamp="2020-01-01")

    rows = streamed(source.read(spark, static=False, schema=None), checkpoint)

    assert sorted(row.id for row in rows) == [0, 1, 2]


def test_two_beginnings_are_refused() -> None:
    source = DeltaSource(path=Location("lake"), starting_version=1, starting_timestamp="2026-01-01")

    assert [problem.field for problem in source.problems()] == ["starting_timestamp"]


def test_a_catalog_table_is_streamed_by_its_name(
    spark: SparkSession, tmp_path: Path, checkpoint: Path
) -> None:
    name = f"stream_{tmp_path.name}"
    spark.range(3).write.format("delta").option("path", str(tmp_path / "t")).saveAsTable(name)
    # As a view named like the table is, once the views of a pipeline are made.
    spark.range(99).createOrReplaceTempView(name)

    rows = streamed(TableSource(name=name).read(spark, static=False, schema=None), checkpoint)

    assert sorted(row.id for row in rows) == [0, 1, 2]
