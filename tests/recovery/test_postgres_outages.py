"""Postgres goes away, comes back, or answers too late; and two runs of one query meet."""

from __future__ import annotations

import itertools
import json
from contextlib import closing
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from millstream.connectors import registry
from millstream.connectors.api.writer import SinkIdentity
from millstream.diagnostics.failure import CheckpointError, Outage
from millstream.spec.output_mode import OutputMode
from recovery.dying_writer import ROWS, batch, writer_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.connectors.api.sink import Sink
    from millstream.devstack.supervisor.state import Endpoints

pytestmark = pytest.mark.usefixtures("small_batches")
_count = itertools.count()
END_SESSIONS = (
    "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
    " WHERE application_name LIKE 'millstream shop/%'"
)


@pytest.fixture
def sink(stack: Endpoints) -> Sink:
    table = f"outage_{next(_count)}"
    return registry.sinks()["postgres"].model_validate(
        {"url": stack.postgres, "table": table, "ledger_schema": table}
    )


@pytest.fixture
def writer(sink: Sink, spark: SparkSession) -> Iterator[Any]:
    result = writer_of(sink, "append")
    result.open(spark, batch(spark, 0).schema)
    yield result
    result.close()


def count(stack: Endpoints, sink: Sink) -> int:
    with psycopg.connect(stack.postgres) as connection:
        row = connection.execute(f"SELECT count(*) FROM {sink.target()}").fetchone()
    assert row is not None
    return int(row[0])


def end_sessions(stack: Endpoints) -> None:
    """What a restart of the server does to whoever is connected."""
    with psycopg.connect(stack.postgres, autocommit=True) as connection:
        connection.execute(END_SESSIONS)


def test_a_connection_lost_between_batches_is_opened_again(
    writer: Any, sink: Sink, stack: Endpoints, spark: SparkSession
) -> None:
    writer.write(batch(spark, 0), 0)
    end_sessions(stack)

    writer.write(batch(spark, 1), 1)

    assert count(stack, sink) == 2 * ROWS


@pytest.mark.parametrize("way", ["driver", "tasks"])
def test_a_connection_lost_while_spark_computes_the_rows_is_opened_again(
    way: str, stack: Endpoints, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = f"outage_{next(_count)}"
    sink = registry.sinks()["postgres"].model_validate(
        {"url": stack.postgres, "table": table, "ledger_schema": table, "through": way}
    )
    with closing(writer_of(sink, "append")) as writer:
        writer.open(spark, batch(spark, 0).schema)
        collect = writer._collect_rows  # type: ignore[attr-defined]

        def collect_and_disconnect(*given: Any) -> Any:
            rows = collect(*given)
            end_sessions(stack)
            return rows

        monkeypatch.setattr(writer, "_collect_rows", collect_and_disconnect)
        output = writer.write(batch(spark, 0), 0)

    assert (output.rows, output.is_skipped) == (ROWS, False)
    assert count(stack, sink) == ROWS


def test_a_connection_lost_in_a_batch_is_an_outage_and_the_next_attempt_succeeds(
    writer: Any, sink: Sink, stack: Endpoints, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = writer._copy

    def write_and_fail(*given: Any) -> None:
        copy(*given)
        end_sessions(stack)

    with monkeypatch.context() as patch:
        patch.setattr(writer, "_copy", write_and_fail)
        with pytest.raises(Outage):
            writer.write(batch(spark, 0), 0)
    writer.write(batch(spark, 0), 0)

    assert count(stack, sink) == ROWS


def test_a_server_that_accepts_only_reads_as_a_standby_does_is_an_outage(
    writer: Any, sink: Sink, stack: Endpoints, spark: SparkSession
) -> None:
    writer._connection.execute("SET default_transaction_read_only = on")

    with pytest.raises(Outage, match="read-only"):
        writer.write(batch(spark, 0), 0)
    writer.close()
    writer.write(batch(spark, 0), 0)

    assert count(stack, sink) == ROWS


def test_a_commit_whose_answer_is_lost_is_found_in_the_ledger(
    writer: Any, sink: Sink, stack: Endpoints, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = writer._commit

    def write_and_fail(*given: Any) -> bool:
        commit(*given)
        writer._connection.close()
        raise psycopg.OperationalError("server closed the connection unexpectedly")

    monkeypatch.setattr(writer, "_commit", write_and_fail)
    output = writer.write(batch(spark, 0), 0)

    assert (output.rows, output.is_skipped) == (ROWS, False)
    assert count(stack, sink) == ROWS


def test_a_run_that_was_overtaken_is_turned_away(
    writer: Any, sink: Sink, stack: Endpoints, spark: SparkSession
) -> None:
    later = writer_of(sink, "append")
    later.open(spark, batch(spark, 0).schema)

    with pytest.raises(CheckpointError, match="taken over"):
        writer.write(batch(spark, 0), 0)
    later.write(batch(spark, 0), 0)
    later.close()

    assert count(stack, sink) == ROWS


def test_a_run_that_was_replaced_while_it_opens_the_table_does_not_fence_out_the_other(
    writer: Any, sink: Sink, stack: Endpoints, spark: SparkSession, tmp_path: Path
) -> None:
    replaced = writer_of(sink, "append")
    replaced.checkpoint = tmp_path
    lock = tmp_path / "_millstream" / "lock"
    lock.parent.mkdir()
    lock.write_text(json.dumps({"owner": "shop.orders", "pid": 1, "host": "elsewhere", "since": "noon"}))

    with pytest.raises(CheckpointError, match=r"taken over by 'shop.orders' \(process 1 on elsewhere"):
        replaced.open(spark, batch(spark, 0).schema)
    replaced.close()
    writer.write(batch(spark, 0), 0)

    assert count(stack, sink) == ROWS


def test_an_overtaken_run_that_reconnects_stays_overtaken(
    writer: Any, sink: Sink, stack: Endpoints, spark: SparkSession
) -> None:
    later = writer_of(sink, "append")
    later.open(spark, batch(spark, 0).schema)
    later.close()
    end_sessions(stack)

    with pytest.raises(CheckpointError):
        writer.write(batch(spark, 0), 0)

    assert count(stack, sink) == 0


def test_a_table_that_somebody_locks_is_an_outage(
    writer: Any, sink: Sink, stack: Endpoints, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    from psycopg.sql import SQL

    from millstream.connectors.postgres import writer as module

    monkeypatch.setattr(module, "_LIMITS", SQL("SET LOCAL lock_timeout = '200ms'"))
    with psycopg.connect(stack.postgres) as other:
        other.execute(f"LOCK TABLE {sink.target()} IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(Outage, match="lock timeout"):
            writer.write(batch(spark, 0), 0)
    writer.write(batch(spark, 0), 0)

    assert count(stack, sink) == ROWS


def test_a_lock_on_a_table_that_a_query_takes_over_is_an_outage(
    writer: Any, sink: Sink, stack: Endpoints, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    from psycopg.sql import SQL

    monkeypatch.setattr(
        "millstream.connectors.postgres.table.LOCK_LIMIT", SQL("SET LOCAL lock_timeout = '200ms'")
    )
    writer.write(batch(spark, 0), 0)
    # As after the checkpoint was deleted: whether the ledger counts depends on whether the table has rows.
    identity = SinkIdentity("shop", "orders", "another-checkpoint", "postgres:orders", OutputMode.APPEND)
    with closing(sink.writer(identity)) as successor:
        with psycopg.connect(stack.postgres) as other:
            other.execute(f"LOCK TABLE {sink.target()} IN ACCESS EXCLUSIVE MODE")
            with pytest.raises(Outage, match="lock timeout"):
                successor.last_committed_batches(spark)

        assert [entry.batch for entry in successor.last_committed_batches(spark)] == [0]


def test_a_server_without_the_batches_of_the_last_seconds_is_not_written_past(
    writer: Any, sink: Sink, stack: Endpoints, spark: SparkSession
) -> None:
    for number in range(2):
        writer.write(batch(spark, number), number)
    # As after a failover to a standby that had not got the last batch.
    with psycopg.connect(stack.postgres, autocommit=True) as connection:
        connection.execute(f"DELETE FROM {sink.ledger_schema}.ledger WHERE batch_id = 1")
    end_sessions(stack)

    for _ in range(2):
        with pytest.raises(Outage, match="no longer has batch 1 of query"):
            writer.write(batch(spark, 2), 2)

    assert count(stack, sink) == 2 * ROWS
