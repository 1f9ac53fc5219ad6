"""A record by which a batch fails each time is named by topic, partition and offset, with its value."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from confluent_kafka import Producer

from millstream.engine.events.event_bus import Event, EventBus
from millstream.engine.run import RunOptions, run_pipeline
from millstream.pipeline.model import Pipeline

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from kafka.conftest import Broker
    from millstream.devstack.supervisor.state import Endpoints

_count = itertools.count()
BAD = {"id": "bad\x1b[31m", "amount": 0}


def run_until_failure(
    spark: SparkSession, broker: Broker, folder: Path, view: str, sink: dict[str, Any]
) -> Event:
    """How a query ends over two partitions of forty records, one of which is bad."""
    topic = broker.topic(2)
    producer = Producer({"bootstrap.servers": broker.address})
    for number in range(80):
        bad = number == 53
        row = BAD if bad else {"id": f"g{number}", "amount": number + 1}
        producer.produce(topic, json.dumps(row).encode(), partition=number % 2)
    assert producer.flush(60) == 0
    spec = {
        "name": "shop",
        "sources": {
            "orders": {
                "kafka": {"bootstrap_servers": broker.address, "subscribe": topic},
                "schema": {"id": "string", "amount": "int"},
            }
        },
        "views": {"shares": view},
        "queries": {"shares": {"to": sink, "output_mode": "update" if "GROUP" in view else "append"}},
        "folder": folder,
    }
    messages: list[Event] = []
    events = EventBus()
    events.listen(messages.append)
    pipeline = Pipeline.model_validate(spec, context={"folder": folder})
    assert not run_pipeline(spark, pipeline, RunOptions(until_caught_up=True), events, {}), messages
    events.close()
    (actual,) = [event for event in messages if event.event == "query_failed"]
    assert actual.data["record"] == [f"partition 1 of topic '{topic}', offset 26"]
    return actual


@pytest.mark.parametrize(
    "view",
    [
        "SELECT id, 100 / amount AS share FROM orders",
        "SELECT max(100 / amount) AS share, count(*) AS many FROM orders GROUP BY id",
    ],
)
def test_a_record_that_a_view_cannot_compute_is_named(
    spark: SparkSession, broker: Broker, tmp_path: Path, view: str
) -> None:
    event = run_until_failure(
        spark, broker, tmp_path, view, {"parquet": {"path": str(tmp_path / "out"), "layout": "by_batch"}}
    )

    assert "DIVIDE_BY_ZERO" in event.data["reason"]
    assert event.data["value"] == ascii(json.dumps(BAD))


def test_a_record_that_a_sink_refuses_is_named_and_nothing_is_written(
    spark: SparkSession, broker: Broker, stack: Endpoints, tmp_path: Path
) -> None:
    table = f"poison_{next(_count)}"
    with psycopg.connect(stack.postgres, autocommit=True) as connection:
        connection.execute(f"CREATE TABLE {table} (id text, amount int CHECK (amount > 0))")
    sink = {"postgres": {"url": stack.postgres, "table": table, "ledger_schema": table}}

    event = run_until_failure(spark, broker, tmp_path, "SELECT id, amount FROM orders", sink)

    assert "check constraint" in event.data["reason"]
    with psycopg.connect(stack.postgres) as connection:
        assert connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)
