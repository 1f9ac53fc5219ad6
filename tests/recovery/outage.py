"""A pipeline of many small batches for the tests of sinks that go away: what it reads, and what must arrive."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import psycopg
from confluent_kafka import Consumer, TopicPartition

if TYPE_CHECKING:
    from pathlib import Path

    from millstream.devstack.supervisor.state import Endpoints

KEYS = ("a", "b", "c")
_BEGAN = 1_750_000_000


def write_input(folder: Path, batches: int, first: int = 0) -> None:
    """A file a batch, read in this order: each key once, with the batch's number."""
    (folder / "in").mkdir(exist_ok=True)
    for batch in range(first, first + batches):
        rows = [json.dumps({"key": key, "n": batch}) for key in KEYS]
        file = folder / "in" / f"{batch:05}.json"
        file.write_text("\n".join(rows))
        # Spark reads files by the time of their last change, to the millisecond.
        os.utime(file, (_BEGAN + batch, _BEGAN + batch))


def spec(folder: Path, sink: dict[str, Any]) -> dict[str, Any]:
    """Copies the files, one a batch, into a folder and to a sink that may set batches aside."""
    return {
        "name": "shop",
        "spark": {"spark.master": "local[2]", "spark.sql.shuffle.partitions": 1},
        "sources": {
            "orders": {
                "json": {"path": str(folder / "in"), "max_files_per_trigger": 1},
                "schema": {"key": "string", "n": "int"},
            }
        },
        "queries": {
            "copy": {
                "from": "orders",
                "to": [
                    {**sink, "on_error": "dead_letter"},
                    {"parquet": {"path": str(folder / "out"), "layout": "by_batch"}},
                ],
            }
        },
    }


def table(stack: Endpoints, name: str) -> dict[str, Any]:
    """A fresh Postgres sink whose table tells in which order rows came."""
    with psycopg.connect(stack.postgres, autocommit=True) as connection:
        connection.execute(f"CREATE TABLE {name} (key text, n int, seq bigserial)")
    return {"postgres": {"url": stack.postgres, "table": name, "ledger_schema": f"{name}_ledger"}}


def in_table(stack: Endpoints, name: str) -> dict[str, list[int]]:
    """For each key the numbers in the table, in the order in which they came."""
    with psycopg.connect(stack.postgres) as connection:
        query = f"SELECT key, array_agg(n ORDER BY seq) FROM {name} GROUP BY key"
        return dict(connection.execute(query).fetchall())


def topic(stack: Endpoints, name: str) -> dict[str, Any]:
    """A transactional Kafka sink. A transaction whose broker is away is given up after fifteen seconds."""
    settings = {"bootstrap_servers": stack.kafka, "topic": name, "key": ["key"], "transactional": True}
    settings["options"] = {"kafka.transaction.timeout.ms": 15_000}
    return {"kafka": {**settings, "ledger_topic": f"{name}-ledger"}}


def in_topic(stack: Endpoints, name: str) -> dict[str, list[int]]:
    """For each key the committed numbers, in the order of their partition."""
    settings = {"bootstrap.servers": stack.kafka, "group.id": "test", "enable.partition.eof": True}
    consumer = Consumer({**settings, "isolation.level": "read_committed"})
    actual: dict[str, list[int]] = {}
    try:
        partitions = set(consumer.list_topics(name, timeout=60).topics[name].partitions)
        consumer.assign([TopicPartition(name, number, 0) for number in partitions])
        while partitions:
            message = consumer.poll(60)
            assert message is not None, "the broker does not answer"
            if message.error() is None:
                row = json.loads(message.value() or b"")
                actual.setdefault(row["key"], []).append(row["n"])
            else:
                partitions.discard(message.partition())
    finally:
        consumer.close()
    return actual


def expected_rows(batches: int) -> dict[str, list[int]]:
    """Each key has each number once, in order."""
    return {key: list(range(batches)) for key in KEYS}
