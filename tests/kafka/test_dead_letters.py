"""Records of a topic that break an expectation are kept as they came, with the place where they stand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource

from delta_tables import read_rows
from millstream.cli.main import run_command
from millstream.connectors.api import dead_letters
from millstream.engine.events.event_bus import Event, EventBus
from millstream.engine.run import RunOptions, run_pipeline
from millstream.pipeline.model import Pipeline

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from kafka.conftest import Broker

pytestmark = pytest.mark.usefixtures("small_batches")

GOOD, LOW = b'{"id": "a", "amount": 3}', b'{ "id":"b","amount":-4 }'
# Of each record that `send` puts on a topic.
HEADERS = [{"key": "trace", "value": b"\xff1"}]


def orders(broker: Broker, folder: Path, otherwise: str, that: str = "amount > 0") -> Pipeline:
    """Orders of a fresh topic, expected to have an amount, to a Delta table."""
    return Pipeline.model_validate(
        {
            "name": "shop",
            "sources": {
                "orders": {
                    "kafka": {"bootstrap_servers": broker.address, "subscribe": broker.topic(1)},
                    "schema": {"id": "string", "amount": "int"},
                    "on_malformed": "dead_letter",
                    "expect": {"paid": {"that": that, "otherwise": otherwise}},
                }
            },
            "queries": {"copy": {"from": "orders", "to": {"delta": str(folder / "table")}}},
            "folder": folder,
        },
        context={"folder": folder},
    )


def run_query(spark: SparkSession, pipeline: Pipeline) -> list[Event]:
    """What a run until caught up told."""
    messages: list[Event] = []
    events = EventBus()
    events.listen(messages.append)
    run_pipeline(spark, pipeline, RunOptions(until_caught_up=True), events, {})
    events.close()
    return messages


def send(broker: Broker, pipeline: Pipeline, *records: tuple[bytes | None, bytes | None]) -> None:
    """Put keys and values on the pipeline's topic, each with a header."""
    topic = pipeline.sources["orders"].source.topics[0]  # type: ignore[attr-defined]
    producer = Producer({"bootstrap.servers": broker.address, "message.max.bytes": 20_000_000})
    for key, value in records:
        producer.produce(topic, value=value, key=key, partition=0, headers=[("trace", b"\xff1")])
    assert producer.flush(60) == 0


@pytest.mark.parametrize("that", ["amount > 0", "amount > 0 AND now() IS NOT NULL"])
def test_the_bytes_and_the_place_of_a_row_are_kept(
    spark: SparkSession, broker: Broker, tmp_path: Path, that: str
) -> None:
    pipeline = orders(broker, tmp_path, "dead_letter", that)
    send(broker, pipeline, (b"k", GOOD), (b"\xfe", LOW))

    run_query(spark, pipeline)

    (dead_letter,) = dead_letters.read_unique(pipeline.letters)
    assert (dead_letter.key, dead_letter.value, dead_letter.partition, dead_letter.offset) == (
        b"\xfe",
        LOW,
        0,
        1,
    )
    assert (dead_letter.expectation, dead_letter.reason) == ("paid", f"expected {that}")
    assert dead_letter.headers == HEADERS
    assert len(read_rows(tmp_path / "table")) == 1


def test_a_failure_names_topic_partition_and_offset(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    pipeline = orders(broker, tmp_path, "fail")
    send(broker, pipeline, (None, GOOD), (None, LOW))

    (failed,) = [event for event in run_query(spark, pipeline) if event.event == "query_failed"]

    topic = pipeline.sources["orders"].source.topics[0]  # type: ignore[attr-defined]
    assert "expectation 'paid' of source 'orders' does not hold" in failed.data["reason"]
    assert f"topic {topic}, partition 0, offset 1" in failed.data["reason"]


def corpus() -> list[tuple[bytes | None, bytes | None, str]]:
    """Records that cannot be decoded, each with its key and the reason."""
    deep = b"[" * 10_000 + b"]" * 10_000
    return [
        (b"k", b"\xff\xfe{", "the value is not UTF-8"),
        (None, b'{"id": "a", "amou', "the value is not JSON"),
        (b"k", deep, "the value is not JSON"),
        (None, b'{"id": "a", "amount": 1, "more": ' + deep + b"}", "the value is not JSON"),
        (b"\xff", b'{"id": "a", "amount": "many"}', "the value does not fit the schema"),
        (None, b'{"id": "a", "amount": {"is": 3}}', "the value does not fit the schema"),
        (b"", b"", "the value is empty"),
        (b"k", None, "the value is null"),
        (None, b'"' + b"x" * 10_000_000, "the value is not JSON"),
    ]


def test_each_malformed_record_among_good_ones_is_kept_with_its_place(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    pipeline = orders(broker, tmp_path, "warn")
    topic = pipeline.sources["orders"].source.topics[0]  # type: ignore[attr-defined]
    size = ConfigEntry("max.message.bytes", "20000000", incremental_operation=AlterConfigOpType.SET)
    limits = ConfigResource("topic", topic, incremental_configs=[size])
    broker.admin.incremental_alter_configs([limits])[limits].result(60)
    for key, value, _ in corpus():
        send(broker, pipeline, (b"g", GOOD), (key, value))

    events = run_query(spark, pipeline)

    unique = dead_letters.read_unique(pipeline.letters)
    assert [(dead_letter.key, dead_letter.value, dead_letter.reason) for dead_letter in unique] == corpus()
    assert [(dead_letter.topic, dead_letter.partition, dead_letter.offset) for dead_letter in unique] == [
        (topic, 0, 2 * number + 1) for number in range(len(corpus()))
    ]
    assert [event for event in events if event.event == "query_failed"] == []
    assert len(read_rows(tmp_path / "table")) == len(corpus())


def test_letters_sent_on_are_what_they_were_and_tell_their_place(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    pipeline = orders(broker, tmp_path, "warn")
    send(broker, pipeline, (b"\xfe", b"{"))
    run_query(spark, pipeline)
    (letter,) = dead_letters.read_unique(pipeline.letters)
    topic = broker.topic(1)
    source = pipeline.sources["orders"].source
    spec = f"""name: shop
sources:
  orders:
    kafka: {{bootstrap_servers: "{broker.address}", subscribe: {source.topics[0]}}}
    schema: {{id: string, amount: int}}
    on_malformed: dead_letter
queries: {{copy: {{from: orders, to: {{delta: table}}}}}}
"""  # type: ignore[attr-defined]
    (tmp_path / "pipeline.yml").write_text(spec)

    assert run_command(["deadletter", "resend", "1", "--to", topic, "-f", str(tmp_path)]) == 0

    # The record stays in the list: what reads the other topic may fail as well.
    assert dead_letters.read_unique(pipeline.letters) == [letter]
    kafka = {"kafka.bootstrap.servers": broker.address, "subscribe": topic, "includeHeaders": "true"}
    (row,) = spark.read.format("kafka").options(**kafka).load().collect()
    assert (bytes(row.key), bytes(row.value)) == (b"\xfe", b"{")
    assert [(header.key, bytes(header.value)) for header in row.headers] == [
        ("trace", b"\xff1"),
        ("millstream-dead-letter", f"{letter.topic}/0@0".encode()),
    ]

    send_all = ["deadletter", "resend", "--source", "orders", "--to", topic, "-f", str(tmp_path)]
    assert run_command([*send_all, "--delete"]) == 0
    assert dead_letters.read_unique(pipeline.letters) == []
    assert spark.read.format("kafka").options(**kafka).load().count() == 2


@pytest.mark.parametrize(
    ("bad", "most", "reads"),
    [
        ([(b"\xfe", b'{"id": '), (None, b"\xff\xfe"), (b"k", None)], 100, 0),
        ([(b"\xfe", b'{"id": '), (None, b"\xff\xfe"), (b"k", None)], 2, 1),
        ([(b"\xfe", b"[" * 5000), (None, b"\xff\xfe")], 100, 1),
    ],
    ids=["few", "many", "a large one"],
)
def test_malformed_records_are_kept_as_they_came_and_a_few_need_no_second_read(
    spark: SparkSession,
    broker: Broker,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    bad: list[tuple[bytes | None, bytes | None]],
    most: int,
    reads: int,
) -> None:
    monkeypatch.setattr("millstream.engine.delivery.dead_letters.MOST_HANDED_OVER", most)
    pipeline = orders(broker, tmp_path, "dead_letter")
    kind = type(pipeline.sources["orders"].source)
    read_range, ranges = kind.read_range, []

    def counted(*arguments: Any) -> Any:
        ranges.append(arguments)
        return read_range(*arguments)

    monkeypatch.setattr(kind, "read_range", counted)
    send(broker, pipeline, (b"k", GOOD), *bad)

    run_query(spark, pipeline)

    kept = sorted(dead_letters.read_unique(pipeline.letters), key=lambda one: one.offset)
    assert [(one.key, one.value) for one in kept] == bad
    assert [(one.partition, one.offset, one.expectation) for one in kept] == [
        (0, number, None) for number in range(1, len(bad) + 1)
    ]
    assert all(one.reason and one.timestamp for one in kept)
    assert [one.headers for one in kept] == [HEADERS] * len(bad)
    assert len(ranges) == reads
    assert len(read_rows(tmp_path / "table")) == 1
