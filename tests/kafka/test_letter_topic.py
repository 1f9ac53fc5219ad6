"""Dead letters in a topic: what a reader finds there, and what cannot be deleted from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.cimpl import NewTopic

from conformance.test_letters import BARE, FULL, NOON, keep
from millstream.connectors import registry
from millstream.connectors.letters import read
from millstream.connectors.sink import SinkIdentity
from millstream.diagnostics.failure import NotReady, WrongUse
from millstream.spec.mode import OutputMode

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kafka.conftest import Broker


def box(broker: Broker, topic: str) -> Any:
    settings = {"bootstrap_servers": broker.address, "topic": topic, "ledger_topic": f"{topic}-ledger"}
    return registry.boxes()["kafka"].model_validate(settings)


def kept(broker: Broker, topic: str, spark: SparkSession, *letters: dict[str, Any]) -> Any:
    """A topic with these letters, a batch each."""
    made = box(broker, topic)
    keeper = made.keeper(SinkIdentity("shop", "copy", topic, "dead_letters", OutputMode.APPEND))
    keeper.open(spark)
    for number, letter in enumerate(letters):
        keep(keeper, spark, number, letter)
    keeper.close()
    return made


def test_a_record_has_the_bytes_that_were_set_aside(broker: Broker, spark: SparkSession) -> None:
    kept(broker, "letters-bytes", spark, FULL)

    kafka = {
        "kafka.bootstrap.servers": broker.address,
        "subscribe": "letters-bytes",
        "includeHeaders": "true",
    }
    (row,) = spark.read.format("kafka").options(**kafka).load().collect()
    assert (bytes(row.key), bytes(row.value)) == (FULL["key"], FULL["value"])
    assert [one.key for one in row.headers] == ["trace ü", "none", "millstream-letter"]


def test_records_of_others_are_passed_over(broker: Broker, spark: SparkSession) -> None:
    made = kept(broker, "letters-others", spark, BARE)
    producer = Producer({"bootstrap.servers": broker.address})
    for headers in (None, [("millstream-letter", b"{")], [("millstream-letter", None)]):
        producer.produce("letters-others", b"mine", headers=headers)
    assert producer.flush(10) == 0

    assert [one.source for one in read(made)] == ["paid"]


def test_a_letter_set_aside_again_tells_of_the_second_time(broker: Broker, spark: SparkSession) -> None:
    again = {**FULL, "headers": [{"key": "millstream-letter", "value": b"{}"}]}

    made = kept(broker, "letters-again", spark, again)

    (letter,) = read(made)
    assert (letter.offset, letter.headers) == (7, again["headers"])


def test_letters_behind_others_stay_and_are_counted(broker: Broker, spark: SparkSession) -> None:
    made = kept(broker, "letters-behind", spark, FULL, BARE, FULL)

    assert made.purge(None, "orders") == 1

    assert [one.source for one in read(made)] == ["orders", "paid"]


def test_a_purge_of_letters_that_all_stand_behind_others_is_refused(
    broker: Broker, spark: SparkSession
) -> None:
    made = kept(broker, "letters-refused", spark, BARE, FULL)

    with pytest.raises(WrongUse, match="deleted from its beginning only"):
        made.purge(None, "orders")

    assert len(read(made)) == 2


def test_a_compacted_topic_is_refused(broker: Broker) -> None:
    topic = NewTopic("letters-compact", 1, 1, config={"cleanup.policy": "compact"})
    broker.admin.create_topics([topic])["letters-compact"].result(10)

    with pytest.raises(NotReady, match="is compacted"):
        box(broker, "letters-compact").probe()


def test_a_purge_before_the_first_letter_deletes_nothing(broker: Broker, spark: SparkSession) -> None:
    made = kept(broker, "letters-early", spark, FULL)

    assert made.purge(NOON, None) == 0

    assert len(read(made)) == 1
