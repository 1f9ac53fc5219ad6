"""The transactional Kafka sink against a real broker: once, whoever dies and whatever is lost on the way."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition, admin
from confluent_kafka.cimpl import NewTopic

from millstream.checkpoint.lock import CheckpointLock
from millstream.connectors.api.batch_ledger import UNTOLD
from millstream.connectors.api.writer import SinkIdentity
from millstream.connectors.kafka import ledger, transactions
from millstream.connectors.kafka.client import partition_ends
from millstream.connectors.kafka.client.partition_ends import wait_for_commits
from millstream.connectors.kafka.sink import KafkaSink
from millstream.connectors.kafka.transactions import TransactionalWriter
from millstream.diagnostics.failure import CheckpointError, MillstreamError, Outage
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from conftest import Broker


def batch(spark: SparkSession, first: int, rows: int = 100) -> DataFrame:
    """Rows whose ids no other batch has."""
    return spark.range(first, first + rows, numPartitions=2).selectExpr("id", "concat('row ', id) AS text")


def opened(
    spark: SparkSession, broker: Broker, topic: str | None, query_id: str, **settings: Any
) -> TransactionalWriter:
    fields = {"bootstrap_servers": broker.address, "topic": topic, "transactional": True, "key": "id"}
    sink = KafkaSink.model_validate(fields | settings)
    owner = SinkIdentity("shop", "orders", query_id, "kafka:orders", OutputMode.APPEND)
    writer = sink.writer(owner)
    assert isinstance(writer, TransactionalWriter)
    writer.open(spark, batch(spark, 0).schema)
    return writer


def committed(broker: Broker, topic: str, partitions: int = 2) -> list[int]:
    """Keys of the records that a reader of committed records sees, in order."""
    wait_for_commits({"bootstrap.servers": broker.address}, topic)
    consumer = Consumer(
        {
            "bootstrap.servers": broker.address,
            "group.id": uuid.uuid4().hex,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    places = [TopicPartition(topic, number, 0) for number in range(partitions)]
    consumer.assign(places)
    actual, ended = [], 0
    while ended < partitions:
        message = consumer.poll(60)
        assert message is not None, "the broker is silent"
        if message.error() is None:
            actual.append(int(message.key()))
        else:
            assert message.error().code() == KafkaError._PARTITION_EOF
            ended += 1
    consumer.close()
    return sorted(actual)


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


def test_an_older_run_is_turned_away(spark: SparkSession, broker: Broker) -> None:
    topic, query = broker.topic(), uuid.uuid4().hex
    older = opened(spark, broker, topic, query)
    older.write(batch(spark, 0), 0)
    opened(spark, broker, topic, query).write(batch(spark, 100), 1)

    with pytest.raises(CheckpointError, match="taken over"):
        older.write(batch(spark, 100), 1)

    assert committed(broker, topic) == list(range(200))


def test_an_older_run_that_is_replaced_while_it_sends_is_turned_away_and_fences_nobody_out(
    spark: SparkSession, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The broker's refusal arrives while records are still being queued. From then on the client refuses them itself.
    monkeypatch.setattr(transactions, "_QUEUE", 100)
    topic, query = broker.topic(), uuid.uuid4().hex
    older = opened(spark, broker, topic, query)
    newer: list[TransactionalWriter] = []
    older._producer = Replaced(older._producer, lambda: newer.append(opened(spark, broker, topic, query)))

    with pytest.raises(CheckpointError, match="taken over"):
        older.write(batch(spark, 0, rows=20_000), 0)

    newer[0].write(batch(spark, 0), 0)
    assert committed(broker, topic) == list(range(100))


class Replaced:
    """A producer that another one replaces once the broker has some records of its transaction."""

    def __init__(self, producer: Any, replace: Callable[[], None]) -> None:
        self._real, self._replace, self._replaced = producer, replace, False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def produce_batch(self, topic: str, messages: list[dict[str, Any]]) -> None:
        self._real.produce_batch(topic, messages)
        if not self._replaced:
            self._real.flush(10)
            self._replaced = True
            self._replace()


def test_a_run_that_was_replaced_while_it_opens_the_topic_fences_nobody_out(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    topic, query = broker.topic(), uuid.uuid4().hex
    older = opened(spark, broker, topic, query)
    older.checkpoint = tmp_path
    lock = tmp_path / "_millstream" / "lock"
    lock.parent.mkdir()
    lock.write_text(json.dumps({"owner": "shop.orders", "pid": 1, "host": "elsewhere", "since": "noon"}))
    newer = opened(spark, broker, topic, query)

    with pytest.raises(CheckpointError, match=r"taken over by 'shop.orders' \(process 1 on elsewhere"):
        older.open(spark, batch(spark, 0).schema)

    newer.write(batch(spark, 0), 0)
    assert committed(broker, topic) == list(range(100))


@pytest.mark.parametrize("took_place", [True, False])
def test_a_commit_whose_answer_is_lost_is_decided_by_the_ledger(
    spark: SparkSession, broker: Broker, took_place: bool
) -> None:
    topic, query = broker.topic(), uuid.uuid4().hex
    writer = opened(spark, broker, topic, query)
    writer._producer = Cut(writer._producer, took_place)

    if took_place:
        assert writer.write(batch(spark, 0), 0).rows == 100
    else:
        with pytest.raises(MillstreamError, match="did not accept the batch"):
            writer.write(batch(spark, 0), 0)
        writer.write(batch(spark, 0), 0)

    assert committed(broker, topic) == list(range(100))


class Cut:
    """A producer whose connection breaks during its commit."""

    def __init__(self, producer: Any, took_place: bool) -> None:
        self._real, self._took_place = producer, took_place

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def commit_transaction(self, patience: float) -> None:
        if self._took_place:
            self._real.commit_transaction(patience)
        else:
            self._real.flush(patience)
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))


def test_a_transaction_that_outlives_its_timeout_is_sent_again(
    spark: SparkSession, broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partition_ends, "_SETTLES", 60.0)
    topic, query = broker.topic(), uuid.uuid4().hex
    # Time enough for the second write on a loaded machine.
    writer = opened(spark, broker, topic, query, options={"kafka.transaction.timeout.ms": 5000})
    writer.checkpoint = tmp_path
    writer._producer = Suspended(writer._producer, broker, topic)

    with CheckpointLock(tmp_path, "shop.orders"):
        with pytest.raises(Outage, match=r"was open for \d+ s, and brokers abort one after 5 s") as error:
            writer.write(batch(spark, 0), 0)
        writer.write(batch(spark, 0), 0)

    assert "max_offsets_per_trigger" in error.value.fix
    assert "kafka.transaction.timeout.ms" in error.value.fix
    assert committed(broker, topic) == list(range(100))


def test_a_run_that_slept_through_its_replacement_is_turned_away_and_fences_nobody_out(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    topic, query = broker.topic(), uuid.uuid4().hex
    older = opened(spark, broker, topic, query, options={"kafka.transaction.timeout.ms": 1000})
    older.checkpoint = tmp_path
    older._producer = Suspended(older._producer, broker, topic)
    lock = tmp_path / "_millstream" / "lock"
    lock.parent.mkdir()
    lock.write_text(json.dumps({"owner": "shop.orders", "pid": 1, "host": "elsewhere", "since": "noon"}))
    newer = opened(spark, broker, topic, query)

    with pytest.raises(CheckpointError, match="taken over"):
        older.write(batch(spark, 0), 0)

    newer.write(batch(spark, 0), 0)
    assert committed(broker, topic) == list(range(100))


def test_a_lost_answer_does_not_fence_out_the_run_that_took_over(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    topic, query = broker.topic(), uuid.uuid4().hex
    older = opened(spark, broker, topic, query)
    older.checkpoint = tmp_path
    lock = tmp_path / "_millstream" / "lock"
    lock.parent.mkdir()
    lock.write_text(json.dumps({"owner": "shop.orders", "pid": 1, "host": "elsewhere", "since": "noon"}))
    newer = opened(spark, broker, topic, query)
    older._producer = Unreachable(older._producer)

    with pytest.raises(CheckpointError, match=r"taken over by 'shop.orders' \(process 1 on elsewhere"):
        older.write(batch(spark, 0), 0)

    newer.write(batch(spark, 0), 0)
    assert committed(broker, topic) == list(range(100))


def test_brokers_that_go_away_while_a_transaction_is_aborted_are_an_outage(
    spark: SparkSession, broker: Broker
) -> None:
    topic, query = broker.topic(), uuid.uuid4().hex
    writer = opened(spark, broker, topic, query)
    writer._producer = Unreachable(writer._producer, abortable=True)

    with pytest.raises(Outage, match="did not accept the batch"):
        writer.write(batch(spark, 0), 0)

    opened(spark, broker, topic, query).write(batch(spark, 0), 0)
    assert committed(broker, topic) == list(range(100))


class Suspended:
    """A producer whose process stands still before its first commit until the brokers have ended the transaction."""

    def __init__(self, producer: Any, broker: Broker, topic: str) -> None:
        self._real, self._broker, self._topic = producer, broker, topic

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def commit_transaction(self, patience: float) -> None:
        self._real.flush(patience)
        # Readers of committed records get past its records only once the transaction has ended.
        wait_for_commits({"bootstrap.servers": self._broker.address}, self._topic)
        self._real.commit_transaction(patience)


class Unreachable:
    """A producer whose brokers go away at its commit; an error that is `abortable` asks for an abort, which fails."""

    def __init__(self, producer: Any, *, abortable: bool = False) -> None:
        self._real, self._abortable = producer, abortable

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def commit_transaction(self, _patience: float) -> None:
        raise KafkaException(
            KafkaError(KafkaError._TIMED_OUT, "no broker answers", txn_requires_abort=self._abortable)
        )

    def abort_transaction(self, _patience: float) -> None:
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))


def test_a_record_that_is_too_large_leaves_nothing_of_its_batch(spark: SparkSession, broker: Broker) -> None:
    topic = broker.topic()
    writer = opened(spark, broker, topic, uuid.uuid4().hex)
    large = batch(spark, 0, 3).selectExpr("id", "if(id = 2, repeat('x', 2000000), 'x') AS text")

    with pytest.raises(MillstreamError, match="larger than"):
        writer.write(large, 0)

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
