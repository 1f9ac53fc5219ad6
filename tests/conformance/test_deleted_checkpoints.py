"""A checkpoint is deleted under a sink on a server, and an account of an older version is read."""

from __future__ import annotations

import shutil
import uuid
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from conformance.replays import Shop, Way
from conformance.targets import IN_SANDBOX, Case
from millstream.connectors import registry
from millstream.connectors.api.batch_ledger import BatchMetadata
from millstream.connectors.api.writer import SinkIdentity
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.devstack.supervisor.state import Endpoints

WAYS = (
    Way(Case("postgres", OutputMode.APPEND)),
    Way(Case("kafka", OutputMode.APPEND), (("transactional", True),)),
    *(Way(Case(kind, OutputMode.APPEND)) for kind in sorted(IN_SANDBOX)),
)


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_a_start_is_refused_until_it_is_adopted(
    way: Way, spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    shop = Shop(tmp_path, spark, OutputMode.APPEND, request, (way,))
    shop.add_rows("1.json", ("a", "1"))
    assert shop.run()
    shutil.rmtree(tmp_path / ".millstream" / "checkpoints")

    assert not shop.run()
    row = shop.rows()[way.query]
    assert shop.run(adopt=True)
    assert shop.run()

    assert row == [("a", "1")]
    assert shop.rows()[way.query] == [("a", "1"), ("a", "1")]
    (failed,) = [event.data for event in shop.events if event.event == "query_failed"]
    assert failed["cause"] == "checkpoint"
    assert "from another checkpoint" in failed["reason"]


OLD = """
CREATE SCHEMA {0};
CREATE TABLE {0}.fence (writer text PRIMARY KEY, epoch bigint NOT NULL, pipeline text NOT NULL, query text NOT NULL,
  claimed_at timestamptz NOT NULL DEFAULT now());
CREATE TABLE {0}.ledger (writer text NOT NULL, batch_id bigint NOT NULL, epoch bigint NOT NULL, target text NOT NULL,
  rows bigint NOT NULL, committed_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (writer, batch_id));
CREATE TABLE {0}.held (k text, v text);
INSERT INTO {0}.held VALUES ('a', '1');
INSERT INTO {0}.fence VALUES ('old/postgres:held', 1, 'shop', 'q', now());
INSERT INTO {0}.ledger VALUES ('old/postgres:held', 4, 1, '{0}.held', 1, now());
"""


def opened(stack: Endpoints, schema: str, query_id: str) -> Any:
    """A writer of query `q` on the old ledger, before it is opened."""
    fields = {"url": stack.postgres, "table": f"{schema}.held", "ledger_schema": schema}
    sink = registry.sinks()["postgres"].model_validate(fields)
    writer = sink.writer(SinkIdentity("shop", "q", query_id, "postgres:held", OutputMode.APPEND))
    writer.note = lambda batch: BatchMetadata(('{"end": 1}',), batch, "1:1")
    return writer


@pytest.fixture
def old(stack: Endpoints) -> str:
    """A schema with a ledger as the first version made it, and a batch 4 in it."""
    name = f"old_{uuid.uuid4().hex[:8]}"
    with psycopg.connect(stack.postgres, autocommit=True) as connection:
        connection.execute(OLD.format(name))
    return name


def test_a_ledger_without_notes_tells_whose_batches_it_has(
    old: str, stack: Endpoints, spark: SparkSession
) -> None:
    writer = opened(stack, old, "fresh")

    (messages,) = writer.last_committed_batches(spark)

    writer.close()
    assert (messages.query_id, messages.batch, messages.note) == ("old", 4, BatchMetadata())


def test_a_ledger_without_notes_goes_on_with_them(old: str, stack: Endpoints, spark: SparkSession) -> None:
    rows = spark.sql("SELECT 'b' AS k, '2' AS v")
    writer = opened(stack, old, "old")
    writer.open(spark, rows.schema)

    assert writer.has_batch(4)
    assert writer.entry(4).note == BatchMetadata()
    writer.write(rows, 5)

    assert writer.entry(5).note == writer.note(5)
    writer.close()


def test_an_emptied_table_has_no_strangers(old: str, stack: Endpoints, spark: SparkSession) -> None:
    with psycopg.connect(stack.postgres, autocommit=True) as connection:
        connection.execute(f"TRUNCATE {old}.held")
    fresh, own = opened(stack, old, "fresh"), opened(stack, old, "old")

    assert fresh.last_committed_batches(spark) == ()
    assert [batch.batch for batch in own.last_committed_batches(spark)] == [4]
    fresh.close()
    own.close()
