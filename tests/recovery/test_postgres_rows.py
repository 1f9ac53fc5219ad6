"""Rows on their way to Postgres, through the driver and through Spark's tasks: the same rows, each once."""

from __future__ import annotations

import itertools
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from psycopg.sql import SQL
from pyspark.sql.types import StructField, StructType

from millstream.connectors.postgres.copy.rows import encode_columns
from millstream.connectors.postgres.copy.staging import Staging
from millstream.connectors.postgres.copy.types import find_mismatch
from millstream.connectors.postgres.table import find_table
from millstream.diagnostics.failure import MillstreamError, Outage
from recovery.dying_writer import ROWS, batch, writer_of
from recovery.postgres_tables import WAYS, make, rows_of, sink_of, write_frame

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

    from millstream.connectors.api.sink import Sink
    from millstream.devstack.supervisor.state import Endpoints

pytestmark = pytest.mark.usefixtures("small_batches")
SHORT_LIMIT = SQL("SET LOCAL lock_timeout = '200ms'")

# Every type with its edges; text with all that COPY's text form would have to escape.
VALUES = """
  SELECT 1 AS id, true AS yes, CAST(-128 AS TINYINT) AS tiny, CAST(-32768 AS SMALLINT) AS small,
    -2147483648 AS whole, -9223372036854775808 AS large, CAST('-Infinity' AS FLOAT) AS real,
    CAST('NaN' AS DOUBLE) AS wide, CAST('-12345678901234567890.123456789' AS DECIMAL(38, 9)) AS exact,
    'tab\\tline\\nback\\\\slash \\\\N "quote" é 😀' AS words, CAST('' AS STRING) AS nothing,
    DATE'0001-01-01' AS day, TIMESTAMP'1883-11-18 12:03:57.123456' AS instant,
    TIMESTAMP_NTZ'9999-12-31 23:59:59.999999' AS clock, X'00FF5C' AS bytes,
    array(1, NULL) AS list, map('a', 1) AS pairs, named_struct('x', 1, 'y', NULL) AS parts,
    named_struct('a', TIMESTAMP'2026-01-31 12:00:00.123456', 'b', TIMESTAMP_NTZ'2026-01-31 12:00:00.000001') AS times
  UNION ALL SELECT 2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
    NULL, NULL, NULL, NULL
"""


@pytest.mark.parametrize("way", WAYS)
def test_every_type_arrives_as_it_was(way: str, stack: Endpoints, spark: SparkSession) -> None:
    sink = sink_of(stack, way)

    write_frame(sink, spark.sql(VALUES))

    text = (
        "id, concat_ws(' | ', yes, tiny, small, whole, large, real, wide, exact, day, instant, clock, bytes,"
    )
    text += " list, pairs, parts, times), words, nothing"
    full, empty = rows_of(stack, sink, text)
    assert full[1] == (
        "t | -128 | -32768 | -2147483648 | -9223372036854775808 | -Infinity | NaN |"
        " -12345678901234567890.123456789 | 0001-01-01 | 1883-11-18 12:03:57.123456+00 |"
        ' 9999-12-31 23:59:59.999999 | \\x00ff5c | [1, null] | {"a": 1} | {"x": 1, "y": null} |'
        ' {"a": "2026-01-31T12:00:00.123456Z", "b": "2026-01-31T12:00:00.000001"}'
    )
    assert full[2:] == ('tab\tline\nback\\slash \\N "quote" é 😀', "")
    assert empty == (2, "", None, None)


@pytest.mark.parametrize("way", WAYS)
def test_a_column_of_another_type_is_cast_by_the_server(
    way: str, stack: Endpoints, spark: SparkSession
) -> None:
    sink = sink_of(stack, way)
    columns = "id integer, text varchar(9), price numeric(6, 2), key uuid, doc jsonb"
    make(stack, f"CREATE TABLE {sink.target()} ({columns})")

    write_frame(
        sink,
        spark.sql(
            "SELECT 7L AS id, 'abc' AS text, 1.005D AS price, '{\"a\": [1]}' AS doc,"
            " '6f1d0fb2-6b0d-4d7a-8a43-2a5e3c0f9b11' AS key"
        ),
    )

    assert [str(value) for value in rows_of(stack, sink, "id, text, price, key, doc")[0]] == [
        "7", "abc", "1.01", "6f1d0fb2-6b0d-4d7a-8a43-2a5e3c0f9b11", "{'a': [1]}",
    ]  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("frame", "said"),
    [
        ("SELECT 70000 AS small, 'a' AS text", "rejects a row"),
        ("SELECT 1 AS small, concat('a', chr(0)) AS text", "column 'text' contains a NUL byte"),
        ("SELECT 1 AS small, 'longer than nine' AS text", "rejects a row"),
    ],
)
def test_a_row_that_does_not_fit_is_told_in_one_sentence(
    way: str, frame: str, said: str, stack: Endpoints, spark: SparkSession
) -> None:
    sink = sink_of(stack, way)
    make(stack, f"CREATE TABLE {sink.target()} (small smallint, text varchar(9))")

    with pytest.raises(MillstreamError, match=said):
        write_frame(sink, spark.sql(frame))

    assert rows_of(stack, sink) == []


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("mode", ["append", "update"])
def test_a_row_marked_as_deleted_removes_the_row_of_its_key(
    way: str, mode: str, stack: Endpoints, spark: SparkSession
) -> None:
    sink = sink_of(stack, way, merge_on=["id"], columns=["id", "text"], delete_when="op = 'D'")
    write_frame(sink, batch(spark, 0).selectExpr("*", "'I' AS op"), mode)
    changes = spark.sql(
        "SELECT * FROM VALUES (0L, 'gone', 'D'), (1L, 'changed', 'U'), (999L, 'never there', 'D'),"
        " (500L, 'added', NULL) AS t(id, text, op)"
    )

    write_frame(sink, changes, mode, 1)

    rows = dict(rows_of(stack, sink))
    assert (0 in rows, rows[1], 999 in rows, rows[500]) == (False, "changed", False, "added")
    assert len(rows) == ROWS


@pytest.mark.parametrize("way", WAYS)
def test_a_key_of_fixed_length_is_compared_whole(way: str, stack: Endpoints, spark: SparkSession) -> None:
    sink = sink_of(stack, way, merge_on=["land"], columns=["land", "n"], delete_when="op = 'D'")
    make(stack, f"CREATE TABLE {sink.target()} (land char(2) PRIMARY KEY, n int)")
    write_frame(sink, spark.sql("SELECT * FROM VALUES ('DE', 1, 'I'), ('DK', 1, 'I') AS t(land, n, op)"))

    changes = spark.sql("SELECT * FROM VALUES ('DE', 2, 'U'), ('DK', 2, 'D') AS t(land, n, op)")
    write_frame(sink, changes, batch_id=1)

    assert rows_of(stack, sink) == [("DE", 2)]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("column", ["char(2)", "varchar(2)"])
def test_a_deletion_with_a_longer_key_than_the_column_stores_deletes_nothing(
    way: str, column: str, stack: Endpoints, spark: SparkSession
) -> None:
    sink = sink_of(stack, way, merge_on=["land"], columns=["land", "n"], delete_when="op = 'D'")
    make(stack, f"CREATE TABLE {sink.target()} (land {column} PRIMARY KEY, n int)")
    write_frame(sink, spark.sql("SELECT 'DE' AS land, 1 AS n, 'I' AS op"))

    write_frame(sink, spark.sql("SELECT 'DEU' AS land, 1 AS n, 'D' AS op"), batch_id=1)

    assert rows_of(stack, sink) == [("DE", 1)]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("timestamptz(3)", "TIMESTAMP'2026-01-31 12:00:00.123456Z'"),
        ("timestamp(0)", "TIMESTAMP_NTZ'2026-01-31 12:00:00.6'"),
        ("numeric(10, 2)", "1.239BD"),
    ],
    ids=["timestamptz", "timestamp", "numeric"],
)
def test_a_row_is_deleted_also_if_the_column_rounds_its_key(
    way: str, column: str, value: str, stack: Endpoints, spark: SparkSession
) -> None:
    sink = sink_of(stack, way, merge_on=["key"], columns=["key", "n"], delete_when="op = 'D'")
    make(stack, f"CREATE TABLE {sink.target()} (key {column} PRIMARY KEY, n int)")
    write_frame(sink, spark.sql(f"SELECT {value} AS key, 1 AS n, 'I' AS op"))

    write_frame(sink, spark.sql(f"SELECT {value} AS key, 1 AS n, 'D' AS op"), batch_id=1)

    assert rows_of(stack, sink) == []


def test_keys_that_the_column_rounds_to_one_value_are_refused_as_one_key(
    stack: Endpoints, spark: SparkSession
) -> None:
    sink = sink_of(stack, "driver", merge_on=["key"])
    make(stack, f"CREATE TABLE {sink.target()} (key numeric(10, 2) PRIMARY KEY, n int)")
    frame = spark.sql("SELECT * FROM VALUES (1.239BD, 1), (1.241BD, 2) AS t(key, n)")

    with pytest.raises(MillstreamError, match=r"2 rows of one batch have the same key .*: key = 1\.24"):
        write_frame(sink, frame, "update")

    assert rows_of(stack, sink) == []


def test_a_repeated_key_is_named_also_if_it_is_a_time_that_python_does_not_have(
    stack: Endpoints, spark: SparkSession
) -> None:
    sink = sink_of(stack, "driver", merge_on=["at"])
    make(stack, f"CREATE TABLE {sink.target()} (at timestamptz PRIMARY KEY, n bigint)")

    with pytest.raises(MillstreamError, match=r"2 rows of one batch have the same key .*: at = infinity"):
        write_frame(sink, spark.sql("SELECT 'infinity' AS at, id AS n FROM range(2)"), "update")


@pytest.mark.parametrize("way", WAYS)
def test_a_null_key_that_an_index_accepts_once_is_deleted(
    way: str, stack: Endpoints, spark: SparkSession
) -> None:
    sink = sink_of(stack, way, merge_on=["id", "part"], columns=["id", "part"], delete_when="op = 'D'")
    make(
        stack,
        f"CREATE TABLE {sink.target()} (id int NOT NULL, part text, UNIQUE NULLS NOT DISTINCT (id, part))",
    )
    write_frame(sink, spark.sql("SELECT * FROM VALUES (1, NULL, 'I'), (2, NULL, 'I') AS t(id, part, op)"))

    write_frame(sink, spark.sql("SELECT 1 AS id, CAST(NULL AS STRING) AS part, 'D' AS op"), batch_id=1)

    assert rows_of(stack, sink) == [(2, None)]


def test_a_task_that_ran_twice_counts_once(
    stack: Endpoints, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = sink_of(stack, "tasks")
    fill = Staging.fill

    def twice(self: Staging, connection: Any, frame: DataFrame) -> None:
        fill(self, connection, frame)
        first, count = self.attempts, self.count
        with psycopg.connect(stack.postgres, autocommit=True) as other:
            other.execute(
                f"INSERT INTO {self.schema}.{self.name} SELECT id, text, -1 FROM {self.schema}.{self.name}"
            )
        self.attempts, self.count = first, count

    monkeypatch.setattr(Staging, "fill", twice)
    write_frame(sink, batch(spark, 0))

    assert [row[0] for row in rows_of(stack, sink)] == list(range(ROWS))


def test_staged_rows_that_a_crash_of_the_server_took_are_an_outage(
    stack: Endpoints, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = sink_of(stack, "tasks")
    fill = Staging.fill

    def emptied(self: Staging, connection: Any, frame: DataFrame) -> None:
        fill(self, connection, frame)
        connection.execute(f"TRUNCATE {self.schema}.{self.name}")

    with closing(writer_of(sink, "append")) as writer:
        writer.open(spark, batch(spark, 0).schema)
        with monkeypatch.context() as patch:
            patch.setattr(Staging, "fill", emptied)
            with pytest.raises(Outage, match="are lost"):
                writer.write(batch(spark, 0), 0)
        writer.write(batch(spark, 0), 0)

    assert [row[0] for row in rows_of(stack, sink)] == list(range(ROWS))


def test_what_a_dead_run_staged_is_removed_by_the_next(stack: Endpoints, spark: SparkSession) -> None:
    sink = sink_of(stack, "tasks")
    with closing(writer_of(sink, "append")) as dead:
        dead.open(spark, batch(spark, 0).schema)
        dead._collect_rows(batch(spark, 0), 0)  # type: ignore[attr-defined]

    with closing(writer_of(sink, "append")) as after:
        after.open(spark, batch(spark, 0).schema)

    assert staging_tables(stack, sink) == []


def staging_tables(stack: Endpoints, sink: Sink) -> list[str]:
    with psycopg.connect(stack.postgres) as connection:
        tables = connection.execute(
            "SELECT relname FROM pg_class WHERE relname LIKE 'incoming%%' AND relnamespace = %s::regnamespace",
            (sink.target(),),
        ).fetchall()
    return [name for (name,) in tables]


@contextmanager
def locked(stack: Endpoints, staging: Staging) -> Iterator[None]:
    """The lock of a task that copies rows. The server ends it after a minute, so that no failing test hangs."""
    settings = "-c idle_in_transaction_session_timeout=60s"
    with psycopg.connect(stack.postgres, options=settings) as task:
        task.execute(SQL("LOCK TABLE {} IN ROW EXCLUSIVE MODE").format(staging.identifier))
        yield


def test_a_start_does_not_wait_for_a_task_that_still_stages_rows_for_a_dead_run(
    stack: Endpoints, spark: SparkSession
) -> None:
    sink = sink_of(stack, "tasks")
    with closing(writer_of(sink, "append")) as dead:
        dead.open(spark, batch(spark, 0).schema)
        staging = dead._collect_rows(batch(spark, 0), 0)  # type: ignore[attr-defined]

    with locked(stack, staging):
        write_frame(sink, batch(spark, 0))
        assert staging_tables(stack, sink) == [staging.name]
    write_frame(sink, batch(spark, 1), batch_id=1)

    assert staging_tables(stack, sink) == []
    assert [row[0] for row in rows_of(stack, sink)] == list(range(2 * ROWS))


def test_a_task_that_still_stages_rows_for_an_earlier_attempt_at_the_batch_is_an_outage(
    stack: Endpoints, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("millstream.connectors.postgres.copy.staging.LOCK_LIMIT", SHORT_LIMIT)
    sink = sink_of(stack, "tasks")
    with closing(writer_of(sink, "append")) as writer:
        writer.open(spark, batch(spark, 0).schema)
        staging = writer._collect_rows(batch(spark, 0), 0)  # type: ignore[attr-defined]

        with locked(stack, staging), pytest.raises(Outage, match="lock timeout"):
            writer.write(batch(spark, 0), 0)
        writer.write(batch(spark, 0), 0)

    assert [row[0] for row in rows_of(stack, sink)] == list(range(ROWS))


def test_a_batch_too_large_for_the_driver_goes_through_the_tasks(
    stack: Endpoints, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = sink_of(stack, "auto")

    def full(*_: object) -> None:
        raise RuntimeError("Total size of serialized results is bigger than spark.driver.maxResultSize")

    monkeypatch.setattr("millstream.connectors.postgres.writer.CopyRows", full)
    write_frame(sink, batch(spark, 0))

    assert len(rows_of(stack, sink)) == ROWS


@pytest.mark.parametrize(("weaker", "used"), [("off", "on"), ("remote_apply", "remote_apply")])
def test_a_batch_is_on_the_disk_before_its_commit_returns_whatever_the_role_is_set_to(
    weaker: str, used: str, stack: Endpoints, spark: SparkSession
) -> None:
    sink = sink_of(stack, "driver")
    text = "durability text DEFAULT current_setting('synchronous_commit')"
    make(stack, f"CREATE TABLE {sink.target()} (id bigint, text text, {text})")
    make(stack, f"ALTER ROLE CURRENT_USER SET synchronous_commit = {weaker}")
    try:
        write_frame(sink, batch(spark, 0))
    finally:
        make(stack, "ALTER ROLE CURRENT_USER RESET synchronous_commit")

    assert rows_of(stack, sink, "DISTINCT durability") == [(used,)]


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "Asia/Kolkata"])
def test_an_instant_in_a_column_of_text_is_written_as_postgres_writes_it_in_the_zone_of_spark(
    zone: str, stack: Endpoints, spark: SparkSession
) -> None:
    sink = sink_of(stack, "driver")
    instants = ("2026-01-31 12:00:00.5", "2026-07-01 00:00:00", "1880-03-01 03:04:05.000006")
    make(stack, f"CREATE TABLE {sink.target()} (id integer, seen text, short varchar(40))")
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", zone)
    frame = session.sql(
        "SELECT id, seen, seen AS short FROM VALUES (9, CAST(NULL AS TIMESTAMP)),"
        + ", ".join(f"({number}, TIMESTAMP '{text}Z')" for number, text in enumerate(instants))
        + " AS t(id, seen)"
    )

    write_frame(sink, frame)

    with psycopg.connect(stack.postgres, options=f"-c timezone={zone}") as connection:
        texts = [
            connection.execute("SELECT %s::timestamptz::text", (f"{text}Z",)).fetchone() for text in instants
        ]
    expected = [(number, *text, *text) for number, text in enumerate(texts) if text is not None]
    assert rows_of(stack, sink) == [*expected, (9, None, None)]


SCALARS = (
    "tinyint", "smallint", "int", "bigint", "float", "double", "decimal(9,0)", "decimal(10,2)", "boolean", "date",
    "timestamp", "timestamp_ntz", "binary", "string",
)  # fmt: skip
COLUMNS = (
    "smallint", "integer", "bigint", "real", "double precision", "numeric", "numeric(6,2)", "boolean", "date",
    "timestamp without time zone", "timestamp with time zone", "time without time zone", "json", "jsonb", "uuid",
    "text", "character varying(9)", "character(9)", "bytea",
)  # fmt: skip


@pytest.mark.usefixtures("spark")
def test_check_refuses_a_type_for_a_column_if_the_server_has_no_cast_for_what_the_writer_sends(
    stack: Endpoints,
) -> None:
    name = "every_cast"
    make(stack, f"CREATE TABLE {name} ({', '.join(f'c{n} {kind}' for n, kind in enumerate(COLUMNS))})")
    accepted, unrefused = set(), set()
    types = {kind: StructType.fromDDL(f"value {kind}")["value"].dataType for kind in SCALARS}
    with psycopg.connect(stack.postgres, autocommit=True, options="-c search_path=public") as connection:
        table = find_table(connection, f"public.{name}")
        assert table is not None
        for kind, (number, held) in itertools.product(SCALARS, enumerate(COLUMNS)):
            name = f"c{number}"
            schema = StructType([StructField(name, types[kind])])
            (column,) = encode_columns(schema, (name,), table)
            mismatch = find_mismatch(kind, held)
            if mismatch is None or not mismatch.accepts_nothing:
                unrefused.add((kind, held))
            try:
                connection.execute(f"SELECT NULL::{column.wire}::{table.casts[name]}")
            except psycopg.errors.CannotCoerce:
                continue
            accepted.add((kind, held))

    # Casts between bytes and whole numbers came with Postgres 18.
    new_casts = {*itertools.product(["binary"], COLUMNS[:3]), *itertools.product(SCALARS[:4], ["bytea"])}
    assert unrefused - new_casts == accepted - new_casts
