"""The transactional Kafka sink if another run takes over, an answer is lost or a transaction ends by its timeout."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from kafka.transactional import batch, committed, opened
from millstream.checkpoint.lock import CheckpointLock
from millstream.connectors.kafka import transactions
from millstream.connectors.kafka.client import partition_ends
from millstream.connectors.kafka.client.partition_ends import wait_for_commits
from millstream.diagnostics.failure import CheckpointError, MillstreamError, Outage

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from conftest import Broker
    from millstream.connectors.kafka.transactions import TransactionalWriter


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
