"""Batches in Kafka transactions that the driver's memory does not hold."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import pytest

from kafka.transactional import committed_in_order, opened
from millstream.connectors.kafka import transactions
from millstream.diagnostics.failure import Outage
from millstream.spark.cluster import stored_rows
from millstream.spark.cluster.stored_rows import read_in_portions
from result_limit import limited_results

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

    from conftest import Broker

ROWS = 6000


@pytest.fixture
def little_memory(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let Spark refuse to bring more than 200 kB to the driver, and read portions of 50 kB."""
    monkeypatch.setattr(stored_rows, "PORTION", 50_000)
    with limited_results(spark, "200k"):
        yield


def large_batch(spark: SparkSession, first: int, rows: int) -> DataFrame:
    """Rows of some hundred bytes, in three partitions, of which one has half as many as the others."""
    ids = spark.range(first, first + rows, numPartitions=3).where(
        f"id % {rows} NOT BETWEEN {rows // 3} AND {rows // 2}"
    )
    return ids.selectExpr("id", "repeat(sha2(string(id), 256), 2) AS text")


def ids_of(first: int, rows: int) -> list[int]:
    return [first + number for number in range(rows) if not rows // 3 <= number <= rows // 2]


@pytest.mark.usefixtures("little_memory")
def test_each_row_of_a_large_batch_is_sent_once_and_in_order(spark: SparkSession, broker: Broker) -> None:
    topic = broker.topic(partitions=1)
    writer = opened(spark, broker, topic, uuid.uuid4().hex, headers={"text": "text"})
    resets: list[int] = []
    writer.reset_metrics = lambda: resets.append(1)

    results = [writer.write(large_batch(spark, number * ROWS, ROWS), number) for number in range(2)]
    # Portions are read while the transaction is open.
    assert writer._timeout_seconds() == transactions.LARGE_TIMEOUT_MS / 1000 > 60
    results.append(writer.write(large_batch(spark, 2 * ROWS, 60), 2))
    results.append(writer.write(large_batch(spark, 3 * ROWS, 60), 3))

    expected = [*ids_of(0, ROWS), *ids_of(ROWS, ROWS), *ids_of(2 * ROWS, 60), *ids_of(3 * ROWS, 60)]
    assert [result.rows for result in results] == [len(ids_of(0, ROWS))] * 2 + [len(ids_of(0, 60))] * 2
    assert committed_in_order(broker, topic) == expected
    # The batch that was refused ran twice; the next one was expected to be large.
    assert resets == [1]
    assert not writer.is_large
    writer.close()


@pytest.mark.usefixtures("little_memory")
def test_portions_are_small_and_hold_each_row_in_order(spark: SparkSession) -> None:
    records = large_batch(spark, 0, ROWS).selectExpr("string(id) AS key", "text AS value")
    context: Any = spark.sparkContext._jsc
    others = set(context.getPersistentRDDs())

    with read_in_portions(records, 500) as stored:
        chunks = list(stored.chunks)

    assert set(context.getPersistentRDDs()) == others

    assert stored.count == len(ids_of(0, ROWS))
    assert stored.is_large
    assert [int(key) for chunk in chunks for key in chunk.column("key").to_pylist()] == ids_of(0, ROWS)
    # A row has 128 bytes of text, and 64 for the record.
    assert max(chunk.num_rows for chunk in chunks) <= 50_000 // 192


@pytest.mark.usefixtures("little_memory")
def test_rows_that_are_lost_with_an_executor_are_not_computed_again(spark: SparkSession) -> None:
    records = large_batch(spark, 0, ROWS).selectExpr("string(id) AS key", "text AS value")
    context: Any = spark.sparkContext._jsc
    others = set(context.getPersistentRDDs())

    with read_in_portions(records, 500) as stored:
        kept = context.getPersistentRDDs()
        for number in set(kept) - others:
            kept[number].unpersist(True)  # noqa: FBT003 - Java has no keywords
        with pytest.raises(Outage, match="the driver cannot read the rows"):
            list(stored.chunks)


@pytest.mark.usefixtures("little_memory")
def test_a_batch_whose_rows_are_lost_while_they_are_sent_is_sent_again(
    spark: SparkSession, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = broker.topic(partitions=1)
    writer = opened(spark, broker, topic, uuid.uuid4().hex)
    take, taken = stored_rows._take, []

    def lose_the_second(rows: Iterator[Any], count: int) -> list[dict[str, Any]]:
        taken.append(count)
        if len(taken) == 2:
            raise Outage("the driver cannot read the rows", "")
        return take(rows, count)

    monkeypatch.setattr(transactions, "CHUNK", 100)
    monkeypatch.setattr(stored_rows, "_take", lose_the_second)
    with pytest.raises(Outage, match="the driver cannot read the rows"):
        writer.write(large_batch(spark, 0, ROWS), 0)
    writer.write(large_batch(spark, 0, ROWS), 0)
    writer.write(large_batch(spark, ROWS, 60), 1)

    expected = [*ids_of(0, ROWS), *ids_of(ROWS, 60)]
    assert committed_in_order(broker, topic) == expected


def test_an_empty_batch_has_no_portions(spark: SparkSession) -> None:
    records = large_batch(spark, 0, 6).where("id < 0").selectExpr("string(id) AS key", "text AS value")

    with read_in_portions(records, 500) as stored:
        assert (stored.count, stored.is_large, list(stored.chunks)) == (0, False, [])
