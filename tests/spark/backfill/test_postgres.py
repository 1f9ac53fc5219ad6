"""A Postgres table read back in its own words, filled and cut, with the stream's fence left alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from millstream.connectors.api.values.event_time_range import EventTimeRange
from millstream.connectors.postgres.sink import PostgresSink
from millstream.engine.batch.table_diff import find_differences
from millstream.spec.output_mode import OutputMode
from spark.backfill.conftest import SPEC, figures

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from millstream.devstack.supervisor.state import Endpoints
    from spark.backfill.conftest import Shop

EVERY = """
SELECT 1 AS id, 'a "quoted",
text' AS text, '' AS empty, CAST(NULL AS STRING) AS nothing, true AS yes, CAST(2 AS TINYINT) AS tiny, 3L AS long,
1.5D AS double, CAST('NaN' AS FLOAT) AS nan, 12.30BD AS money, DATE'2026-01-01' AS day, X'00FF' AS bytes,
TIMESTAMP'2026-01-01 12:00:00.123456Z' AS at, TIMESTAMP_NTZ'2026-01-01 12:00:00' AS plain,
array(1, NULL) AS many, named_struct('a', 1, 'b', 'x') AS inside
UNION ALL SELECT 2, 'b', NULL, 'x', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
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
