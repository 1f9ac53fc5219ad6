"""The transactional Kafka sink against a real broker: once, whoever dies and whatever is lost on the way."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer, admin
from confluent_kafka.cimpl import NewTopic

from kafka.transactional import batch, committed, committed_values, opened
from millstream.connectors.api.batch_ledger import UNTOLD
from millstream.connectors.api.writer import SinkIdentity
from millstream.connectors.kafka import ledger, transactions
from millstream.connectors.kafka.sink import KafkaSink
from millstream.diagnostics.failure import MillstreamError
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from conftest import Broker


def test_a_replayed_batch_is_not_sent_again(spark: SparkSession, broker: Broker) -> None:
    topic, query = broker.topic(), uuid.uuid4().hex
    first = opened(spark, broker, topic, query)
    first.write(batch(spark, 0), 0)
    first.write(batch(spark, 100), 1)

    writer = opened(spark, broker, topic, query)

    assert writer.has_batch(1)
    assert writer.write(batch(spark, 100), 1).is_skipped
    assert writer.write(batch(spark, 200), 2).rows == 100
    assert committed(broker, topic) == list(range(300))


def test_a_batch_that_fills_the_queue_of_the_client_is_committed_with_its_mark(
    spark: SparkSession, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transactions, "_QUEUE", 100)
    topic, query = broker.topic(), uuid.uuid4().hex
    writer = opened(spark, broker, topic, query)

    writer.write(batch(spark, 0, rows=100), 0)

    assert committed(broker, topic) == list(range(100))
    assert opened(spark, broker, topic, query).has_batch(0)


def test_a_run_that_dies_in_its_transaction_leaves_nothing(spark: SparkSession, broker: Broker) -> None:
    topic, query = broker.topic(), uuid.uuid4().hex
    dying = opened(spark, broker, topic, query)
    dying.write(batch(spark, 0), 0)
    dying._producer.begin_transaction()
    for item, messages in dying._messages(dying.records(batch(spark, 100), 1).toArrow().to_batches()):
        dying._send_all(item, messages)
    dying._producer.flush(60)

    after = opened(spark, broker, topic, query)

    assert not after.has_batch(1)
    after.write(batch(spark, 100), 1)
    assert committed(broker, topic) == list(range(200))


def test_a_mark_behind_another_writers_open_transaction_is_found(broker: Broker) -> None:
    native, topic = {"bootstrap.servers": broker.address}, f"ledger-{uuid.uuid4().hex[:8]}"
    ledger.ensure_topic(native, topic)
    other = Producer({**native, "transactional.id": uuid.uuid4().hex, "transaction.timeout.ms": 3000})
    other.init_transactions(60)
    other.begin_transaction()
    other.produce(topic, b"{}", b"other")
    other.flush(60)
    producer = Producer({**native, "transactional.id": uuid.uuid4().hex})
    producer.init_transactions(60)
    producer.begin_transaction()
    owner = SinkIdentity("shop", "orders", "mine", "kafka:orders", OutputMode.APPEND)
    producer.produce(topic, ledger.encode_entry(7, 100, owner, "orders", UNTOLD), b"mine")
    producer.commit_transaction(60)

    last = ledger.last_entry(native, topic, "mine")
    assert last is not None
    assert last.batch == 7


def test_a_ledger_made_without_sizes_of_segments_gets_them_and_keeps_what_was_set(broker: Broker) -> None:
    topic = f"ledger-{uuid.uuid4().hex[:8]}"
    new_topic = NewTopic(topic, 1, 1, config={"cleanup.policy": "compact", "segment.ms": "60000"})
    broker.admin.create_topics([new_topic])[topic].result(60)

    ledger.ensure_topic({"bootstrap.servers": broker.address}, topic)

    place = admin.ConfigResource("topic", topic)
    settings = broker.admin.describe_configs([place])[place].result(60)
    assert (settings["segment.bytes"].value, settings["segment.ms"].value) == (str(8 * 1024 * 1024), "60000")


def test_a_new_ledger_can_be_compacted_hourly_and_not_into_a_file_for_each_batch(broker: Broker) -> None:
    topic = f"ledger-{uuid.uuid4().hex[:8]}"

    ledger.ensure_topic({"bootstrap.servers": broker.address}, topic)

    place = admin.ConfigResource("topic", topic)
    settings = broker.admin.describe_configs([place])[place].result(60)
    assert (settings["cleanup.policy"].value, settings["segment.ms"].value) == (
        "compact",
        str(60 * 60 * 1000),
    )


def test_a_record_that_is_too_large_leaves_nothing_of_its_batch(spark: SparkSession, broker: Broker) -> None:
    topic = broker.topic()
    writer = opened(spark, broker, topic, uuid.uuid4().hex)
    large = batch(spark, 0, 3).selectExpr("id", "if(id = 2, repeat('x', 2000000), 'x') AS text")
    producer = writer._producer

    with pytest.raises(MillstreamError, match="larger than"):
        writer.write(large, 0)

    # To destroy it in the middle of a transaction could end the process.
    assert writer._producer is producer
    writer.write(batch(spark, 0, 3), 0)
    assert committed(broker, topic) == [0, 1, 2]


def test_rows_name_their_topics_and_keep_their_headers(spark: SparkSession, broker: Broker) -> None:
    even, odd = broker.topic(1), broker.topic(1)
    rows = batch(spark, 0, 10).selectExpr("id", "text", f"if(id % 2 = 0, '{even}', '{odd}') AS place")
    writer = KafkaSink.model_validate(
        {
            "bootstrap_servers": broker.address,
            "topic_column": "place",
            "transactional": True,
            "key": "id",
            "headers": {"trace": "text"},
        }
    ).writer(SinkIdentity("shop", "orders", uuid.uuid4().hex, "kafka:orders", OutputMode.APPEND))
    writer.open(spark, rows.schema)

    writer.write(rows, 0)

    assert committed(broker, even, 1) == [0, 2, 4, 6, 8]
    assert committed(broker, odd, 1) == [1, 3, 5, 7, 9]


def test_two_queries_share_a_ledger_and_do_not_mix(spark: SparkSession, broker: Broker) -> None:
    topic = broker.topic()
    item, other = uuid.uuid4().hex, uuid.uuid4().hex
    opened(spark, broker, topic, item).write(batch(spark, 0), 5)

    second = opened(spark, broker, topic, other)

    assert not second.has_batch(0)
    assert opened(spark, broker, topic, item).has_batch(5)


def test_an_empty_batch_is_marked_and_sends_nothing(spark: SparkSession, broker: Broker) -> None:
    topic, query = broker.topic(), uuid.uuid4().hex

    opened(spark, broker, topic, query).write(batch(spark, 0, 0), 0)

    assert opened(spark, broker, topic, query).has_batch(0)
    assert committed(broker, topic) == []


def test_a_text_keeps_bytes_that_are_not_utf_8(spark: SparkSession, broker: Broker) -> None:
    topic = broker.topic(1)
    rows = spark.sql("SELECT CAST(X'ff00' AS STRING) AS value, CAST(X'31' AS STRING) AS id")

    for transactional in (False, True):
        writer = KafkaSink.model_validate(
            {
                "bootstrap_servers": broker.address,
                "topic": topic,
                "format": "raw",
                "key": "id",
                "transactional": transactional,
            }
        ).writer(SinkIdentity("shop", "orders", uuid.uuid4().hex, "kafka:orders", OutputMode.APPEND))
        writer.open(spark, rows.schema)
        writer.write(rows, 0)

    assert committed_values(broker, topic, 1) == [(1, b"\xff\x00"), (1, b"\xff\x00")]


def test_a_row_without_a_topic_stops_the_batch_and_no_reader_waits_for_its_transaction(
    spark: SparkSession, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transactions, "CHUNK", 1)
    place, item, other = broker.topic(1), uuid.uuid4().hex, uuid.uuid4().hex
    rows = batch(spark, 0, 2).coalesce(1).selectExpr("id", "text", f"if(id = 0, '{place}', NULL) AS place")
    writer = KafkaSink.model_validate(
        {
            "bootstrap_servers": broker.address,
            "topic_column": "place",
            "transactional": True,
            "key": "id",
            "options": {"kafka.transaction.timeout.ms": "600000"},
        }
    ).writer(SinkIdentity("shop", "orders", item, "kafka:orders", OutputMode.APPEND))
    writer.open(spark, rows.schema)

    with pytest.raises(MillstreamError, match="has no topic: column 'place' is NULL"):
        writer.write(rows, 0)

    opened(spark, broker, place, other).write(batch(spark, 5, 1), 0)
    assert committed(broker, place, 1) == [5]
