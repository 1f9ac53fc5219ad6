"""The Kafka source against a real broker."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from millstream.connectors.api.values.offsets import OffsetRange
from millstream.connectors.kafka.source import KafkaSource
from millstream.diagnostics.failure import NotReady

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from conftest import Broker


def source(broker: Broker, **settings: Any) -> KafkaSource:
    return KafkaSource.model_validate({"bootstrap_servers": broker.address, **settings})


def values(frame: DataFrame | None) -> list[str]:
    assert frame is not None
    return sorted(row.value.decode() for row in frame.collect())


def test_a_table_has_the_declared_columns_and_all_records(spark: SparkSession, broker: Broker) -> None:
    topic = broker.topic()
    broker.send(topic, 0, "a", "b")
    broker.send(topic, 1, "c")

    frame = source(broker, subscribe=topic).read(spark, static=True, schema=None)

    assert frame.schema == spark.createDataFrame([], KafkaSource.columns or "").schema
    assert values(frame) == ["a", "b", "c"]


def test_each_batch_of_a_stream_can_be_read_again(
    spark: SparkSession, broker: Broker, checkpoint: Path
) -> None:
    topic = broker.topic()
    kafka_source = source(broker, subscribe=topic, max_offsets_per_trigger=3)
    broker.send(topic, 0, "a", "b", "c", "d")
    broker.send(topic, 1, "e", "f", "g")
    visited: dict[int, list[str]] = {}

    def run() -> list[Any]:
        stream = kafka_source.read(spark, static=False, schema=None).writeStream.trigger(availableNow=True)
        query = (
            stream.option("checkpointLocation", str(checkpoint))
            .foreachBatch(lambda frame, batch: visited.update({batch: values(frame)}))
            .start()
        )
        query.awaitTermination()
        return list(query.recentProgress)

    progress = [item for item in run() if item.numInputRows]
    broker.grow(topic, 3)
    broker.send(topic, 2, "h", "i")
    progress += [item for item in run() if item.numInputRows]

    second = {
        item.batchId: values(
            kafka_source.read_range(
                spark, OffsetRange(item.sources[0].startOffset, item.sources[0].endOffset), None
            )
        )
        for item in progress
    }
    assert len(second) > 2
    assert second == {batch: visited[batch] for batch in second}
    assert sorted(value for batch in second.values() for value in batch) == list("abcdefghi")


def test_records_of_aborted_transactions_are_not_read(spark: SparkSession, broker: Broker) -> None:
    topic = broker.topic()
    broker.send(topic, 0, "kept")
    broker.abort(topic, 0, "aborted")

    assert values(source(broker, subscribe=topic).read(spark, static=True, schema=None)) == ["kept"]


@pytest.mark.parametrize("way", ["pattern", "assign"])
def test_topics_are_found_by_pattern_and_by_partition(spark: SparkSession, broker: Broker, way: str) -> None:
    topic = broker.topic()
    broker.send(topic, 0, "a")
    broker.send(topic, 1, "b")
    chosen = {"pattern": {"subscribe_pattern": f"{topic}.*"}, "assign": {"assign": {topic: [1]}}}[way]

    frame = source(broker, **chosen).read(spark, static=True, schema=None)

    assert values(frame) == (["a", "b"] if way == "pattern" else ["b"])


def test_headers_are_read_when_they_are_wanted(spark: SparkSession, broker: Broker) -> None:
    topic = broker.topic()
    broker.send(topic, 0, "a")

    (row,) = (
        source(broker, subscribe=topic, include_headers=True).read(spark, static=True, schema=None).collect()
    )

    assert [(header.key, bytes(header.value)) for header in row.headers] == [("trace", b"x")]


def test_a_start_in_time_passes_over_older_records(spark: SparkSession, broker: Broker) -> None:
    topic = broker.topic()
    broker.send(topic, 0, "a")

    frame = source(broker, subscribe=topic, starting_timestamp="2099-01-01T00:00:00Z").read(
        spark, static=True, schema=None
    )

    assert values(frame) == []


def test_a_probe_tells_ids_and_partitions(broker: Broker) -> None:
    topic = broker.topic(partitions=3)

    probe = source(broker, subscribe=topic).probe()

    assert probe[f"partitions.{topic}"] == "3"
    assert re.fullmatch(r"[\w-]{22}", probe[f"topic.{topic}"])


def test_a_missing_topic_is_one_sentence(broker: Broker) -> None:
    with pytest.raises(NotReady, match="topic 'nowhere' does not exist at"):
        source(broker, subscribe="nowhere").probe()


def test_a_missing_partition_is_one_sentence(broker: Broker) -> None:
    topic = broker.topic(partitions=2)

    with pytest.raises(NotReady, match="has 2 partitions, but no partition 5"):
        source(broker, assign={topic: [0, 5]}).probe()
