"""A batch with a record that a real broker will never accept ends, with the reason, and leaves nothing."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.cimpl import NewTopic

from kafka.transactional import batch, committed, committed_values, opened
from millstream.connectors.kafka.sink import KafkaSink
from millstream.diagnostics.failure import MillstreamError, NotReady

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from conftest import Broker


@pytest.mark.parametrize("number", [10, pytest.param(100_000, id="that does not fit into one request")])
def test_a_record_without_a_key_in_a_compacted_topic_is_refused(
    spark: SparkSession, broker: Broker, number: int
) -> None:
    topic = f"t-{uuid.uuid4().hex[:8]}"
    broker.admin.create_topics([NewTopic(topic, 1, 1, config={"cleanup.policy": "compact"})])[topic].result(
        60
    )
    writer = opened(spark, broker, topic, uuid.uuid4().hex)
    rows = batch(spark, 0, number).selectExpr("if(id = 7, NULL, id) AS id", "text")

    with pytest.raises(MillstreamError, match="one without a key in a compacted topic") as error:
        writer.write(rows, 0)

    assert not isinstance(error.value, NotReady)
    writer.write(batch(spark, 0, 3), 0)
    assert committed(broker, topic, 1) == [0, 1, 2]


@pytest.mark.parametrize(
    ("place", "problem"), [("no-topic-has-this-name", "does not exist"), ("no name/", "is not a valid name")]
)
def test_a_topic_of_a_row_that_no_broker_has_is_refused(
    spark: SparkSession, broker: Broker, monkeypatch: pytest.MonkeyPatch, place: str, problem: str
) -> None:
    topic = broker.topic(1)
    # How long the client waits for a topic that nobody knows: 30 seconds by default.
    native, waits = KafkaSink.native, {"topic.metadata.propagation.max.ms": "1000"}
    monkeypatch.setattr(KafkaSink, "native", lambda sink: native(sink) | waits)
    writer = opened(spark, broker, None, uuid.uuid4().hex, topic_column="text")
    rows = batch(spark, 0, 10).selectExpr("id", f"if(id = 7, '{place}', '{topic}') AS text")

    with pytest.raises(MillstreamError, match=f"names topic '{place}', which {problem}") as error:
        writer.write(rows, 0)

    assert not isinstance(error.value, NotReady)
    writer.write(batch(spark, 0, 3).selectExpr("id", f"'{topic}' AS text"), 0)
    assert [key for key, _ in committed_values(broker, topic, 1)] == [0, 1, 2]
