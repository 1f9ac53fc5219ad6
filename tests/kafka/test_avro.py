"""Avro values of a real broker: read, written, with and without a registry's header, and the malformed set aside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, Producer
from pyspark.sql import functions as F

from delta_tables import read_rows
from millstream.engine.events.event_bus import Event, EventBus
from millstream.engine.run import RunOptions, run_pipeline
from millstream.pipeline.model import Pipeline
from millstream.spec.avro.encoding import encode_row
from millstream.spec.avro.schema import Avro

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from conftest import Broker

pytestmark = pytest.mark.usefixtures("compiled")

CLICK = {
    "type": "record",
    "name": "Click",
    "namespace": "shop",
    "doc": "a quote's way through SQL: \\ and \"",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "n", "type": ["null", "int"]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["view", "buy"]}},
    ],
}
ALL_NULL = {"type": "record", "name": "Loose", "fields": [{"name": "n", "type": ["null", "int"]}]}
PLAIN: dict[str, Any] = {"schema": CLICK}
SEVEN: dict[str, Any] = {"schema": CLICK, "header": "confluent", "id": 7}
A = {"id": "a", "n": 1, "at": "2026-01-01T12:00:00Z", "tags": ["x", "y"], "kind": "buy"}
B = {"id": "b", "n": None, "at": "2026-01-01T12:01:00Z", "tags": [], "kind": "view"}


def encode_record(value: dict[str, Any], row: dict[str, Any]) -> bytes:
    """The bytes of a row, by an encoder that is not Spark's."""
    return encode_row(Avro.model_validate(value), row)


class Copy:
    """A pipeline that reads Avro values of a topic, and writes them as Avro to another and as rows to Delta."""

    def __init__(self, broker: Broker, folder: Path, value: dict[str, Any], into: dict[str, Any]) -> None:
        self.broker, self.folder = broker, folder
        self.source, self.target = broker.topic(partitions=1), broker.topic(partitions=1)
        self.events: list[Event] = []
        kafka = {"bootstrap_servers": broker.address}
        spec = {
            "name": "shop",
            "sources": {
                "clicks": {
                    "kafka": {**kafka, "subscribe": self.source},
                    "format": "avro",
                    "avro_value": value,
                    "on_malformed": "dead_letter",
                }
            },
            "queries": {
                "copy": {
                    "from": "clicks",
                    "to": [
                        {"kafka": {**kafka, "topic": self.target, "format": "avro", "avro_value": into}},
                        {"delta": str(folder / "rows")},
                    ],
                }
            },
            "folder": folder,
        }
        self.pipeline = Pipeline.model_validate(spec, context={"folder": folder})

    def send(self, *values: bytes | None) -> None:
        """Records with these values."""
        producer = Producer({"bootstrap.servers": self.broker.address})
        for value in values:
            producer.produce(self.source, value, partition=0)
        assert producer.flush(60) == 0

    def run(self, spark: SparkSession) -> bool:
        """Until it is caught up."""
        events = EventBus()
        events.listen(self.events.append)
        try:
            return run_pipeline(spark, self.pipeline, RunOptions(until_caught_up=True), events, {})
        finally:
            events.close()

    def rows(self, spark: SparkSession) -> DataFrame:
        """What came out as rows."""
        return spark.read.format("delta").load(str(self.folder / "rows"))

    def letters(self) -> list[tuple[int, str, bytes | None]]:
        """Offset, reason and value of what was set aside."""
        return sorted(read_rows(str(self.pipeline.letters.target()), "offset", "reason", "value"))

    def encode(self, many: int) -> list[bytes]:
        """The first values of the target."""
        consumer = Consumer({
            "bootstrap.servers": self.broker.address, "group.id": self.target, "auto.offset.reset": "earliest",
        })  # fmt: skip
        consumer.subscribe([self.target])
        try:
            return [message.value() for message in consumer.consume(many, 60)]
        finally:
            consumer.close()


@pytest.mark.parametrize(("value", "into"), [(PLAIN, SEVEN), (SEVEN, PLAIN)], ids=["plain", "with a header"])
def test_rows_come_out_as_they_were_sent_and_are_written_in_avros_own_bytes(
    spark: SparkSession, broker: Broker, tmp_path: Path, value: dict[str, Any], into: dict[str, Any]
) -> None:
    copy = Copy(broker, tmp_path, value, into)
    copy.send(encode_record(value, A), encode_record(value, B))

    assert copy.run(spark)

    rows = copy.rows(spark).orderBy("id").withColumn("at", F.date_format("at", "HH:mm")).collect()
    assert [tuple(row) for row in rows] == [
        ("a", 1, "12:00", ["x", "y"], "buy"),
        ("b", None, "12:01", [], "view"),
    ]
    assert sorted(copy.encode(2)) == sorted([encode_record(into, A), encode_record(into, B)])


def test_malformed_values_are_set_aside_with_their_place_and_the_reason(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    copy = Copy(broker, tmp_path, SEVEN, PLAIN)
    good, other = encode_record(SEVEN, A), encode_record({**SEVEN, "id": 8}, B)
    bad = [None, b"", b"{}", other, good[:-1], good + b"\0", good[:5]]
    copy.send(good, *bad)

    assert copy.run(spark)

    assert [row["id"] for row in copy.rows(spark).collect()] == ["a"]
    unfit = "the value does not fit the Avro schema"
    reasons = [
        "the value is null",
        "the value is empty",
        "the value has no header of a schema registry",
        "the value is of schema 8, not 7",
        unfit,
        unfit,
        unfit,
    ]
    assert copy.letters() == [
        (at, reason, value) for at, (reason, value) in enumerate(zip(reasons, bad, strict=True), 1)
    ]


def test_a_good_row_of_nulls_is_told_from_a_value_that_cannot_be_read(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    copy = Copy(broker, tmp_path, {"schema": ALL_NULL}, {"schema": ALL_NULL})
    copy.send(b"\0", b"\4", b"\0\0")

    assert copy.run(spark)

    assert [row["n"] for row in copy.rows(spark).collect()] == [None]
    assert [at for at, _, _ in copy.letters()] == [1, 2]
