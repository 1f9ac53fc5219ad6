"""Dead letters in a topic: what a reader finds there, and what cannot be deleted from it."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.cimpl import NewTopic
from pyspark.sql.classic.dataframe import DataFrame

from conformance.test_letters import BARE, FULL, NOON, keep
from millstream.connectors import registry
from millstream.connectors.api.dead_letters import COLUMNS, FEW, read_unique
from millstream.connectors.api.writer import SinkIdentity
from millstream.connectors.kafka import dead_letter_topic
from millstream.connectors.kafka.transactions import LARGE_TIMEOUT_MS
from millstream.diagnostics.failure import InvalidInput, NotReady
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kafka.conftest import Broker


def box(broker: Broker, topic: str) -> Any:
    settings = {"bootstrap_servers": broker.address, "topic": topic, "ledger_topic": f"{topic}-ledger"}
    return registry.dead_letter_stores()["kafka"].model_validate(settings)


def store_letters(broker: Broker, topic: str, spark: SparkSession, *letters: dict[str, Any]) -> Any:
    """A topic with these letters, a batch each."""
    result = box(broker, topic)
    keeper = result.keeper(SinkIdentity("shop", "copy", topic, "dead_letters", OutputMode.APPEND))
    keeper.open(spark)
    for number, letter in enumerate(letters):
        keep(keeper, spark, number, letter)
    keeper.close()
    return result


def test_a_record_has_the_bytes_that_were_set_aside(broker: Broker, spark: SparkSession) -> None:
    store_letters(broker, "letters-bytes", spark, FULL)

    kafka = {
        "kafka.bootstrap.servers": broker.address,
        "subscribe": "letters-bytes",
        "includeHeaders": "true",
    }
    (row,) = spark.read.format("kafka").options(**kafka).load().collect()
    assert (bytes(row.key), bytes(row.value)) == (FULL["key"], FULL["value"])
    assert [header.key for header in row.headers] == ["trace ü", "none", "millstream-letter"]


def test_records_of_others_are_passed_over(broker: Broker, spark: SparkSession) -> None:
    result = store_letters(broker, "letters-others", spark, BARE)
    producer = Producer({"bootstrap.servers": broker.address})
    for headers in (None, [("millstream-letter", b"{")], [("millstream-letter", None)]):
        producer.produce("letters-others", b"mine", headers=headers)
    assert producer.flush(60) == 0

    assert [dead_letter.source for dead_letter in read_unique(result)] == ["paid"]


def test_a_letter_set_aside_again_tells_of_the_second_time(broker: Broker, spark: SparkSession) -> None:
    second = {**FULL, "headers": [{"key": "millstream-letter", "value": b"{}"}]}

    result = store_letters(broker, "letters-again", spark, second)

    (letter,) = read_unique(result)
    assert (letter.offset, letter.headers) == (7, second["headers"])


def test_letters_behind_others_stay_and_are_counted(broker: Broker, spark: SparkSession) -> None:
    result = store_letters(broker, "letters-behind", spark, FULL, BARE, FULL)

    assert result.purge(None, "orders") == 1

    assert [dead_letter.source for dead_letter in read_unique(result)] == ["orders", "paid"]


def test_letters_that_were_sent_again_and_are_behind_others_stay_and_are_counted(
    broker: Broker, spark: SparkSession
) -> None:
    result = store_letters(broker, "letters-sent", spark, BARE, FULL)

    assert result.delete_sent("orders", {"copy": [NOON]}) == 1

    assert len(read_unique(result)) == 2


def test_a_purge_of_letters_that_all_stand_behind_others_is_refused(
    broker: Broker, spark: SparkSession
) -> None:
    result = store_letters(broker, "letters-refused", spark, BARE, FULL)

    with pytest.raises(InvalidInput, match="can be deleted only from its start"):
        result.purge(None, "orders")

    assert len(read_unique(result)) == 2


def test_a_compacted_topic_is_refused(broker: Broker) -> None:
    topic = NewTopic("letters-compact", 1, 1, config={"cleanup.policy": "compact"})
    broker.admin.create_topics([topic])["letters-compact"].result(60)

    with pytest.raises(NotReady, match="is compacted"):
        box(broker, "letters-compact").probe()


def test_a_purge_before_the_first_letter_deletes_nothing(broker: Broker, spark: SparkSession) -> None:
    result = store_letters(broker, "letters-early", spark, FULL)

    assert result.purge(NOON, None) == 0

    assert len(read_unique(result)) == 1


def test_of_many_letters_those_at_the_end_are_read(
    broker: Broker, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = store_letters(broker, "letters-many", spark, BARE)
    header = {name: BARE[name] for name in ("query", "source", "topic", "partition", "file", "reason")}
    producer = Producer({"bootstrap.servers": broker.address})
    for number in range(5_000):
        at = (NOON + timedelta(hours=2, seconds=number)).isoformat()
        messages = {
            **header,
            "offset": number,
            "expectation": None,
            "batch_id": 1,
            "timestamp": None,
            "at": at,
        }
        producer.produce("letters-many", b"x", headers=[("millstream-letter", json.dumps(messages).encode())])
    assert producer.flush(60) == 0
    loaded: list[Any] = []
    real = dead_letter_topic._parse_dead_letter
    monkeypatch.setattr(
        dead_letter_topic, "_parse_dead_letter", lambda message: loaded.append(message) or real(message)
    )

    actual = result.latest(20)

    assert [item.offset for item in actual] == list(range(4_999, 4_979, -1))
    assert len(loaded) == 20


def test_many_letters_of_one_batch_never_stand_in_the_driver_together(
    broker: Broker, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = box(broker, "letters-large")
    keeper = result.keeper(SinkIdentity("shop", "copy", "letters-large", "dead_letters", OutputMode.APPEND))
    keeper.open(spark)
    columns = spark.createDataFrame([], COLUMNS).columns
    letters = spark.createDataFrame([tuple(FULL[name] for name in columns)], COLUMNS)
    many = (
        letters.drop("offset")
        .crossJoin(spark.range(2_500).withColumnRenamed("id", "offset"))
        .select(*columns)
    )

    def at_once(*_: Any) -> None:
        raise AssertionError("all letters of the batch came at once")

    monkeypatch.setattr(DataFrame, "toArrow", at_once)
    for _ in range(2):
        keeper.keep(many, 0, FEW)
    # The transaction also lasts as long as the portions are read.
    assert keeper._writer._timeout_ms == LARGE_TIMEOUT_MS
    keeper.close()

    dead_letters = read_unique(result)
    assert [dead_letter.offset for dead_letter in dead_letters] == list(range(2_500))
    assert (dead_letters[7].key, dead_letters[7].value, dead_letters[7].headers) == (
        FULL["key"],
        FULL["value"],
        FULL["headers"],
    )


def test_letters_of_every_partition_are_read(broker: Broker, spark: SparkSession) -> None:
    topic = broker.topic(2)
    result = store_letters(broker, topic, spark, FULL)
    letter = {
        **{name: FULL[name] for name in ("query", "source", "topic", "partition", "file", "reason")},
        "expectation": None,
        "batch_id": 1,
        "timestamp": None,
        "at": NOON.isoformat(),
    }
    producer = Producer({"bootstrap.servers": broker.address})
    for partition in (0, 1):
        text = json.dumps({**letter, "offset": 100 + partition})
        headers = [("millstream-letter", text.encode())]
        producer.produce(topic, b"x", partition=partition, headers=headers)
    assert producer.flush(60) == 0

    assert sorted(letter.offset or 0 for letter in read_unique(result)) == [7, 100, 101]
