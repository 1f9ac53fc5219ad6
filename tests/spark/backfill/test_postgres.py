"""A Postgres table read back in its own words, filled and cut, with the stream's fence left alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from millstream.connectors.api.values.event_time_range import EventTimeRange
from millstream.connectors.postgres.sink import PostgresSink
from millstream.diagnostics.failure import NotReady
from millstream.engine.batch.table_diff import find_differences
from millstream.spark.session_scope import separate_session
from millstream.spec.output_mode import OutputMode
from spark.backfill.conftest import SPEC, figures

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from millstream.devstack.supervisor.state import Endpoints
    from spark.backfill.conftest import Shop

pytestmark = pytest.mark.usefixtures("small_batches")

EVERY = """
SELECT 1 AS id, 'a "quoted",
text' AS text, '' AS empty, CAST(NULL AS STRING) AS nothing, true AS yes, CAST(2 AS TINYINT) AS tiny, 3L AS long,
1.5D AS double, CAST('NaN' AS FLOAT) AS nan, 12.30BD AS money, DATE'2026-01-01' AS day, X'00FF' AS bytes,
TIMESTAMP'2026-01-01 12:00:00.123456Z' AS at, TIMESTAMP_NTZ'2026-01-01 12:00:00' AS plain,
array(1, NULL) AS many, named_struct('a', 1, 'b', 'x') AS inside,
map('bb', array(map('dd', 1, 'c', 2)), 'a', NULL) AS counts
UNION ALL SELECT 2, 'b', NULL, 'x', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
"""


@pytest.fixture
def tables(shop: Shop, stack: Endpoints, request: pytest.FixtureRequest) -> Any:
    """The shop with its sums and orders in tables of its own, and a way to ask the database."""
    name = f"bf_{abs(hash(request.node.name)) % 10**8}"
    url = f'url: "{stack.postgres}", ledger_schema: {name}'
    shop.spec = SPEC.replace("delta: {path: sums, ", f"postgres: {{table: {name}.sums, {url}, ").replace(
        "[{delta: copy}, {parquet: files}]", f"{{postgres: {{table: {name}.copy, {url}}}}}"
    )

    def ask(text: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(stack.postgres, autocommit=True, options="-c timezone=UTC") as connection:
            cursor = connection.execute(text.format(s=name))
            return cursor.fetchall() if cursor.description else []

    return ask


def test_values_of_every_type_are_read_back_as_they_were_written(
    spark: SparkSession, stack: Endpoints
) -> None:
    from millstream.connectors.api.writer import SinkIdentity

    sink = PostgresSink(url=stack.postgres, table="every_type")
    frame = spark.sql(EVERY)
    writer = sink.writer(SinkIdentity("p", "q", "id", "s", OutputMode.APPEND))
    writer.open(spark, frame.schema)
    writer.write(frame, 0)
    writer.close()

    time_range = sink.read_time_range(spark, frame.schema, OutputMode.APPEND, EventTimeRange())

    assert time_range is not None
    assert find_differences(time_range, frame).is_equal


# UTC is the session's zone unless the spec sets another one. New York is five hours behind it in January.
SESSION_ZONES = {
    "UTC": ("2026-01-01 02:30:00.5", "2026-01-01", "2026-07-01 12:00:00", "2026-07-01 00:00:00"),
    "America/New_York": ("2025-12-31 21:30:00.5", "2025-12-31", "2026-07-01 16:00:00", "2026-07-01 04:00:00"),
}


@pytest.fixture
def server_in_berlin(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each new connection the zone of a server that was set up in Berlin."""
    monkeypatch.setenv("PGTZ", "Europe/Berlin")


@pytest.mark.usefixtures("server_in_berlin")
@pytest.mark.parametrize("through", ["driver", "tasks"])
@pytest.mark.parametrize("key", [(), ("at",)])
@pytest.mark.parametrize("zone", SESSION_ZONES)
def test_the_zone_of_the_session_decides_times_without_one_and_that_of_the_server_nothing(
    zone: str, key: tuple[str, ...], through: str, spark: SparkSession, stack: Endpoints
) -> None:
    from millstream.connectors.api.writer import SinkIdentity

    name = f"zones_{zone[:3]}_{len(key)}_{through}"
    with psycopg.connect(stack.postgres, autocommit=True, options="-c search_path=public") as connection:
        connection.execute(
            f'CREATE TABLE "{name}" (at timestamp UNIQUE, day date, plain timestamptz, date timestamptz)'
        )
    sink = PostgresSink.model_validate(
        {"url": stack.postgres, "table": name, "merge_on": key, "through": through}
    )
    with separate_session(spark, {"spark.sql.session.timeZone": zone}) as session:
        frame = session.sql(
            "SELECT TIMESTAMP'2026-01-01 02:30:00.5Z' AS at, TIMESTAMP'2026-01-01 02:30:00Z' AS day,"
            " TIMESTAMP_NTZ'2026-07-01 12:00:00' AS plain, DATE'2026-07-01' AS date"
        )
        writer = sink.writer(SinkIdentity("p", "q", name, "s", OutputMode.APPEND))
        writer.open(session, frame.schema)
        writer.write(frame, 0)
        writer.close()
        stored = sink.read_time_range(session, frame.schema, OutputMode.APPEND, EventTimeRange())
        assert stored is not None
        (read,) = stored.selectExpr(
            "at = TIMESTAMP'2026-01-01 02:30:00.5Z'", "CAST(day AS DATE)", "plain", "date"
        ).collect()
        whole = sink.read_all(session, frame.schema, OutputMode.APPEND)
        assert whole is not None
        assert whole.collect() == stored.collect()

    with psycopg.connect(stack.postgres, options="-c search_path=public") as connection:
        (row,) = connection.execute(
            "SELECT at::text, day::text, (plain AT TIME ZONE 'UTC')::text, (date AT TIME ZONE 'UTC')::text"
            f' FROM "{name}"'
        ).fetchall()
    assert row == SESSION_ZONES[zone]
    assert [str(value) for value in read] == ["True", row[1], "2026-07-01 12:00:00", "2026-07-01"]


@pytest.mark.usefixtures("server_in_berlin")
# Neither zone is that of the server.
@pytest.mark.parametrize("zone", [pytest.param("UTC", marks=pytest.mark.whole), "America/New_York"])
def test_a_range_of_times_without_a_zone_is_replaced_by_its_own_rows(
    zone: str, shop: Shop, tables: Any
) -> None:
    tables("CREATE SCHEMA {s}; CREATE TABLE {s}.copy (id text, amount int, at timestamp)")
    with separate_session(shop.spark, {"spark.sql.session.timeZone": zone}) as session:
        shop.spark = session
        shop.stream("copy")
        assert figures(shop.compare("copy")) == (0, 0, 0)
        tables("UPDATE {s}.copy SET amount = 0 WHERE id IN ('a', 'c', 'e')")

        shop.backfill("copy", start="2026-01-01T12:10Z", end="2026-01-01T12:30Z", replace=True)

    rows = tables("SELECT id, amount FROM {s}.copy ORDER BY id")
    assert rows == [("a", 0), ("b", 4), ("c", 5), ("d", 6), ("e", 0)]


ARRAYS = """
SELECT 1 AS id, array('a "b", {c} \\\\ d', NULL, 'NULL', '') AS words, array(1, NULL) AS numbers,
array(1.5D, CAST('NaN' AS DOUBLE)) AS doubles, array(true) AS yes, array(12.30BD) AS money, array(X'00FF') AS bytes,
array(DATE'2026-01-01') AS days, array(TIMESTAMP'2026-01-01 12:00:00.123456Z') AS at,
array(TIMESTAMP'2026-01-01 12:00:00Z') AS local, array(TIMESTAMP_NTZ'2026-01-01 12:00:00') AS instants,
array(named_struct('a', 1, 'b', 'x "y"')) AS docs, CAST(array() AS ARRAY<INT>) AS nothing, '{1,2}' AS literal
UNION ALL SELECT 2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
"""
ARRAY_TYPES = (
    "id integer, words text[], numbers integer[], doubles float8[], yes boolean[], money numeric(10, 2)[],"
    " bytes bytea[], days date[], at timestamptz[], local timestamp[], instants timestamptz[], docs jsonb[],"
    " nothing integer[], literal integer[]"
)


@pytest.mark.usefixtures("server_in_berlin")
@pytest.mark.parametrize("through", ["driver", "tasks"])
def test_arrays_are_written_to_columns_of_arrays_and_read_back(
    through: str, spark: SparkSession, stack: Endpoints
) -> None:
    from millstream.connectors.api.writer import SinkIdentity

    sink = PostgresSink.model_validate(
        {"url": stack.postgres, "table": f"public.arrays_{through}", "through": through}
    )
    with psycopg.connect(stack.postgres, autocommit=True) as connection:
        connection.execute(f"CREATE TABLE {sink.table} ({ARRAY_TYPES})")
    frame = spark.sql(ARRAYS)
    writer = sink.writer(SinkIdentity("p", "q", through, "s", OutputMode.APPEND))
    writer.open(spark, frame.schema)
    writer.write(frame, 0)
    writer.close()

    with psycopg.connect(stack.postgres) as connection:
        rows = connection.execute(
            f"SELECT words, numbers, bytes, docs, nothing, literal, (instants[1] AT TIME ZONE 'UTC')::text"
            f" FROM {sink.table} ORDER BY id"
        ).fetchall()
    assert rows == [
        (
            ['a "b", {c} \\ d', None, "NULL", ""],
            [1, None],
            [b"\x00\xff"],
            [{"a": 1, "b": 'x "y"'}],
            [],
            [1, 2],
            "2026-01-01 12:00:00",
        ),
        (None,) * 7,
    ]
    stored = sink.read_time_range(spark, frame.schema, OutputMode.APPEND, EventTimeRange())
    assert stored is not None
    assert find_differences(stored, frame).is_equal


@pytest.mark.parametrize(
    ("column", "value"),
    [("text[]", "map('a', 1)"), ("integer[]", "array(array(1), array(2, 3))"), ("integer[]", "1")],
)
def test_a_column_of_arrays_that_accepts_no_value_is_refused_before_the_first_batch(
    column: str, value: str, spark: SparkSession, stack: Endpoints
) -> None:
    from millstream.connectors.api.writer import SinkIdentity

    sink = PostgresSink(url=stack.postgres, table="public.refused_arrays")
    with psycopg.connect(stack.postgres, autocommit=True) as connection:
        connection.execute(f"DROP TABLE IF EXISTS {sink.table}; CREATE TABLE {sink.table} (value {column})")
    writer = sink.writer(SinkIdentity("p", "q", "refused", "s", OutputMode.APPEND))

    with pytest.raises(NotReady, match=r"which an array column of type \w+\[\] cannot store"):
        writer.open(spark, spark.sql(f"SELECT {value} AS value").schema)
    writer.close()


def test_missing_and_changed_rows_come_back_and_the_fence_is_left_alone(shop: Shop, tables: Any) -> None:
    shop.stream("sums")
    fence = "SELECT writer, epoch FROM {s}.fence WHERE writer NOT LIKE 'backfill-%'"
    before = tables(fence)
    tables("DELETE FROM {s}.sums WHERE since = '2026-01-01 12:00Z'")
    tables("UPDATE {s}.sums SET amount = 0 WHERE since = '2026-01-01 12:10Z'")

    assert figures(shop.compare("sums")) == (1, 0, 1)
    shop.backfill("sums")

    assert figures(shop.compare("sums")) == (0, 0, 0)
    assert tables(fence) == before


def test_a_range_is_deleted_and_copied_in_one_transaction(shop: Shop, tables: Any) -> None:
    shop.stream("copy")
    tables("UPDATE {s}.copy SET amount = 0 WHERE id = 'b'")
    tables("INSERT INTO {s}.copy VALUES ('z', 1, '2026-01-01 08:00Z'), ('y', 1, '2026-01-02 08:00Z')")

    report = shop.backfill("copy", start="2026-01-01", end="2026-01-02", replace=True)

    sink_outcome = report.outcomes[0]
    assert (sink_outcome.added, sink_outcome.deleted) == (1, 2)
    assert tables("SELECT id, amount FROM {s}.copy ORDER BY id") == [
        ("a", 3), ("b", 4), ("c", 5), ("d", 6), ("e", 7), ("y", 1),
    ]  # fmt: skip


def test_a_side_table_is_made_beside(shop: Shop, tables: Any) -> None:
    name = tables("SELECT '{s}'")[0][0]

    shop.backfill("sums", into=f"{name}.side")

    assert tables("SELECT count(*) FROM {s}.side") == [(4,)]
    assert tables("SELECT to_regclass('{s}.sums') IS NULL") == [(True,)]
