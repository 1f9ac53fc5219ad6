"""The Kafka sink against a real broker."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from millstream.connectors.api.writer import SinkIdentity, Writer
from millstream.connectors.kafka.sink import KafkaSink
from millstream.connectors.kafka.source import KafkaSource
from millstream.diagnostics.failure import NotReady
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

    from conftest import Broker

OWNER = SinkIdentity("shop", "funnel", "3f0c-11", "kafka:funnel", OutputMode.APPEND)


def orders(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(
        [(1, "ann", None), (2, "bo'b \"é", 2.5)], "id INT, user STRING, amount DOUBLE"
    )


def opened(spark: SparkSession, broker: Broker, **settings: Any) -> Writer:
    sink = KafkaSink.model_validate({"bootstrap_servers": broker.address, **settings})
    writer = sink.writer(OWNER)
    writer.open(spark, orders(spark).schema)
    return writer


def records(spark: SparkSession, broker: Broker, topic: str) -> list[Row]:
    read = KafkaSource.model_validate(
        {"bootstrap_servers": broker.address, "subscribe": topic, "include_headers": True}
    )
    return sorted(read.read(spark, static=True, schema=None).collect(), key=lambda row: bytes(row.value))


def test_a_row_is_an_object_with_every_field(spark: SparkSession, broker: Broker) -> None:
    topic = broker.topic()

    opened(spark, broker, topic=topic, key="id").write(orders(spark), 4)

    rows = records(spark, broker, topic)
    assert [json.loads(row.value) for row in rows] == [
        {"id": 1, "user": "ann", "amount": None},
        {"id": 2, "user": "bo'b \"é", "amount": 2.5},
    ]
    assert [bytes(row.key) for row in rows] == [b"1", b"2"]


def test_a_record_says_which_batch_it_is_of(spark: SparkSession, broker: Broker) -> None:
    topic = broker.topic()

    opened(spark, broker, topic=topic, headers={"it's": "user"}).write(orders(spark).limit(1), 4)

    (row,) = records(spark, broker, topic)
    assert {header.key: bytes(header.value) for header in row.headers} == {
        "millstream-query": b"3f0c-11",
        "millstream-batch": b"4",
        "it's": b"ann",
    }
    assert "user" not in json.loads(row.value)


def test_a_proof_reads_columns_back_from_the_headers_they_went_into(
    spark: SparkSession, broker: Broker
) -> None:
    topic = broker.topic()
    sink = KafkaSink.model_validate(
        {"bootstrap_servers": broker.address, "topic": topic, "headers": {"it's \\": "user"}}
    )
    writer = sink.writer(OWNER)
    writer.open(spark, orders(spark).schema)
    writer.write(orders(spark), 0)

    frame = sink.read_all(spark, orders(spark).schema, OutputMode.APPEND)

    assert frame is not None
    assert sorted(map(tuple, frame.collect())) == [(1, "ann", None), (2, "bo'b \"é", 2.5)]


def test_a_key_of_several_columns_is_an_object(spark: SparkSession, broker: Broker) -> None:
    topic = broker.topic()

    opened(spark, broker, topic=topic, key=["id", "user"]).write(orders(spark).limit(1), 0)

    assert json.loads(records(spark, broker, topic)[0].key) == {"id": 1, "user": "ann"}


def test_csv_and_raw_values(spark: SparkSession, broker: Broker) -> None:
    lines, raw = broker.topic(), broker.topic()

    opened(spark, broker, topic=lines, format="csv", format_options={"sep": ";"}).write(
        orders(spark).limit(1), 0
    )
    opened(spark, broker, topic=raw, format="raw", value="user").write(orders(spark).limit(1), 0)

    assert bytes(records(spark, broker, lines)[0].value) == b"1;ann;"
    assert bytes(records(spark, broker, raw)[0].value) == b"ann"


def test_each_row_goes_to_the_topic_it_names(spark: SparkSession, broker: Broker) -> None:
    topic = broker.topic()
    writer = opened(spark, broker, topic_column="user")

    writer.write(orders(spark).limit(1).selectExpr("id", f"'{topic}' AS user"), 0)

    assert json.loads(records(spark, broker, topic)[0].value) == {"id": 1}


def test_show_gives_the_newest_records_first(spark: SparkSession, broker: Broker) -> None:
    topic = broker.topic(partitions=1)
    sink = KafkaSink.model_validate({"bootstrap_servers": broker.address, "topic": topic})
    writer = sink.writer(OWNER)
    for number in range(3):
        writer.write(spark.range(number, number + 1), number)

    assert sink.rows(2) == (["id"], [[2], [1]])


def test_show_of_an_empty_topic_has_no_rows(broker: Broker) -> None:
    sink = KafkaSink.model_validate({"bootstrap_servers": broker.address, "topic": broker.topic()})

    assert sink.rows(2) == (["key", "value"], [])


def test_a_missing_topic_is_one_sentence(spark: SparkSession, broker: Broker) -> None:
    with pytest.raises(NotReady, match="topic 'nowhere' does not exist"):
        opened(spark, broker, topic="nowhere")


def test_a_column_that_does_not_come_is_named(spark: SparkSession, broker: Broker) -> None:
    with pytest.raises(NotReady, match="column 'nobody', which the query does not have"):
        opened(spark, broker, topic=broker.topic(), key="nobody")
