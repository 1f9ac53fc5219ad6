"""Rows that replace those of their keys in Postgres, by MERGE where it does what ON CONFLICT does."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import psycopg
import pytest
from psycopg.sql import SQL

from millstream.connectors.postgres.copy.incoming import Incoming
from millstream.connectors.postgres.table import find_table
from recovery.postgres_tables import WAYS, make, rows_of, sink_of, write_frame

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from millstream.devstack.supervisor.state import Endpoints

pytestmark = pytest.mark.usefixtures("small_batches")
PATIENCE = 60.0
BATCHES = (
    "SELECT * FROM VALUES (1, 'a'), (2, CAST(NULL AS STRING)) AS rows (id, text)",
    "SELECT * FROM VALUES (2, 'b'), (3, 'c') AS rows (id, text)",
)
FOLLOWS = "CREATE FUNCTION {0}_noted() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'"
TABLES = {
    "plain": ("CREATE TABLE {0} (id int PRIMARY KEY, text text)", True),
    "default value": ("CREATE TABLE {0} (id int PRIMARY KEY, text text, at timestamptz DEFAULT now())", True),
    "trigger": (
        f"CREATE TABLE {{0}} (id int PRIMARY KEY, text text); {FOLLOWS};"
        " CREATE TRIGGER noted BEFORE INSERT ON {0} FOR EACH ROW EXECUTE FUNCTION {0}_noted()",
        False,
    ),
    "collation": ('CREATE TABLE {0} (id int PRIMARY KEY, text text COLLATE "POSIX")', False),
    "partitions": (
        "CREATE TABLE {0} (id int PRIMARY KEY, text text) PARTITION BY HASH (id);"
        " CREATE TABLE {0}_0 PARTITION OF {0} FOR VALUES WITH (MODULUS 1, REMAINDER 0)",
        False,
    ),
    "child": (
        "CREATE TABLE {0} (id int PRIMARY KEY, text text); CREATE TABLE {0}_0 () INHERITS ({0})",
        False,
    ),
    "row security": (
        "CREATE TABLE {0} (id int PRIMARY KEY, text text); ALTER TABLE {0} ENABLE ROW LEVEL SECURITY",
        False,
    ),
}


@pytest.mark.sweep("way", "kind")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", TABLES)
def test_a_row_replaces_that_of_its_key_whatever_the_table_has(
    way: str, kind: str, stack: Endpoints, spark: SparkSession
) -> None:
    sink, (definition, accepts_merge) = sink_of(stack, way, merge_on=["id"]), TABLES[kind]
    make(stack, definition.format(sink.target()))
    with psycopg.connect(stack.postgres) as connection:
        table = find_table(connection, sink.target())
    assert table is not None
    assert table.accepts_merge is accepts_merge

    for number, rows in enumerate(BATCHES):
        write_frame(sink, spark.sql(rows), "update", number)

    assert rows_of(stack, sink, "id, text") == [(1, "a"), (2, "b"), (3, "c")]


def test_a_key_that_another_session_inserts_meanwhile_is_replaced(
    stack: Endpoints, spark: SparkSession
) -> None:
    sink = sink_of(stack, "driver", merge_on=["id"])
    make(stack, TABLES["plain"][0].format(sink.target()))
    frame = spark.sql("SELECT * FROM VALUES (1, 'ours'), (2, 'ours') AS rows (id, text)")
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'MERGE%'"

    with (
        psycopg.connect(stack.postgres, autocommit=True) as watching,
        psycopg.connect(stack.postgres) as other,
        ThreadPoolExecutor(1) as pool,
    ):
        other.execute(f"INSERT INTO {sink.target()} VALUES (1, 'theirs')")
        written = pool.submit(write_frame, sink, frame, "update")
        pause = threading.Event()
        while not written.done() and watching.execute(waiting).fetchone() == (0,):
            pause.wait(0.05)
        assert not written.done(), f"it did not wait for the other session: {written.exception()}"
        other.commit()
        written.result(PATIENCE)

    assert rows_of(stack, sink, "id, text") == [(1, "ours"), (2, "ours")]


@pytest.mark.parametrize(("rows", "by_index"), [(300, "on"), (30_000, "off")])
def test_a_table_much_larger_than_the_batch_is_not_read_whole(
    rows: int, by_index: str, stack: Endpoints, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = sink_of(stack, "driver", merge_on=["id"])
    make(stack, TABLES["plain"][0].format(sink.target()))
    make(
        stack, f"INSERT INTO {sink.target()} SELECT i, repeat('x', 100) FROM generate_series(1, {rows}) AS i"
    )
    noted = f"{sink.ledger_schema}.noted"
    settings = "current_setting('enable_hashjoin') AS hash, current_setting('enable_seqscan') AS scan"
    note = f"CREATE TABLE {noted} AS SELECT {settings}"
    monkeypatch.setattr(Incoming, "merge", lambda *_: SQL(note))

    write_frame(
        sink, spark.range(400).selectExpr("CAST(id AS INT) AS id", "repeat('x', 100) AS text"), "update"
    )

    with psycopg.connect(stack.postgres) as connection:
        assert connection.execute(f"SELECT * FROM {noted}").fetchall() == [(by_index, by_index)]
