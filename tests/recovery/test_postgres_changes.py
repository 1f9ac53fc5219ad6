"""Changes into a Postgres table: whatever their order and their batches, one table follows."""

from __future__ import annotations

import itertools
from contextlib import closing
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

import changes
from millstream.connectors import registry
from millstream.diagnostics.failure import MillstreamError
from recovery.dying_writer import writer_of
from recovery.postgres_tables import make

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from millstream.connectors.api.sink import Sink
    from millstream.devstack.supervisor.state import Endpoints

pytestmark = pytest.mark.usefixtures("small_batches")
_count = itertools.count()


def sink_of(stack: Endpoints, kind: int = 1, way: str = "driver") -> Sink:
    table = f"changes_{next(_count)}"
    fields = {"url": stack.postgres, "table": table, "ledger_schema": table, "through": way}
    cdc = changes.CDC | {"stored_as_scd_type": kind}
    return registry.sinks()["postgres"].model_validate(fields | {"cdc": cdc})


def wrote(sink: Sink, frame: DataFrame, batch_id: int) -> bool:
    with closing(writer_of(sink, "append")) as writer:
        writer.open(frame.sparkSession, frame.schema)
        return not writer.write(frame, batch_id).is_skipped


def table(stack: Endpoints, sink: Sink) -> set[tuple[Any, ...]]:
    with psycopg.connect(stack.postgres) as connection:
        rows = connection.execute(f"SELECT * FROM {sink.target()}").fetchall()
    assert len(set(rows)) == len(rows)
    return set(rows)


@pytest.mark.sweep("kind", "way")
@pytest.mark.parametrize(("kind", "way"), [(1, "driver"), (1, "tasks"), (2, "driver"), (2, "tasks")])
def test_any_order_and_any_batches_make_the_table_that_plain_python_makes(
    kind: int, way: str, stack: Endpoints, spark: SparkSession
) -> None:
    batches = changes.drawn(lists=300, batches=4, seed=11)
    sink, everything = sink_of(stack, kind, way), [change for batch in batches for change in batch]

    for number, batch in enumerate(batches):
        assert wrote(sink, changes.frame(spark, batch), number)
        assert not wrote(sink, changes.frame(spark, batch), number)

    expected = changes.history(everything) if kind == 2 else changes.latest(everything)
    assert table(stack, sink) == expected


def test_a_change_without_a_key_or_a_sequence_ends_the_batch(stack: Endpoints, spark: SparkSession) -> None:
    sink, rows = sink_of(stack), "SELECT 0 AS list, {} AS id, {} AS lsn, 'a' AS text, 'c' AS op"

    with pytest.raises(
        MillstreamError, match="has no sequence value: sequence_by column 'lsn' is null, key list = 0, id = 7"
    ):
        wrote(sink, spark.sql(rows.format("7", "CAST(NULL AS BIGINT)")), 0)
    with pytest.raises(MillstreamError, match="has a null key: column 'id'"):
        wrote(sink, spark.sql(rows.format("CAST(NULL AS INT)", "1L")), 0)
    assert table(stack, sink) == set()


def test_a_change_whose_key_is_a_time_after_the_year_9999_is_named_if_it_has_no_sequence(
    stack: Endpoints, spark: SparkSession
) -> None:
    sink = sink_of(stack)
    columns = "0 AS list, timestamp_seconds(400000000000) AS id, CAST(NULL AS BIGINT) AS lsn, 'a' AS text"

    with pytest.raises(MillstreamError, match=r"has no sequence value.* key list = 0, id = 14645-"):
        wrote(sink, spark.sql(f"SELECT {columns}, 'c' AS op"), 0)


@pytest.mark.parametrize("kind", [1, 2])
def test_deletions_of_a_table_that_was_dropped_do_not_hide_rows_of_the_new_one(
    kind: int, stack: Endpoints, spark: SparkSession
) -> None:
    sink, later_row = sink_of(stack, kind), changes.Change(0, 1, 5, "new", "c")
    wrote(sink, changes.frame(spark, [changes.Change(0, 1, 5, None, "d")]), 0)
    with psycopg.connect(stack.postgres, autocommit=True) as connection:
        connection.execute(f"DROP TABLE {sink.target()}")

    # The numbers of the source's changes start again, as after it was set up anew.
    assert wrote(sink, changes.frame(spark, [later_row]), 0)

    assert table(stack, sink) == (changes.history if kind == 2 else changes.latest)([later_row])


@pytest.mark.parametrize(
    ("kind", "columns", "deleted_at", "expected"),
    [
        (1, "UNIQUE (list, id)", "1.28", set()),
        (
            2,
            "__start_at numeric(10, 1), __end_at numeric(10, 1), UNIQUE (list, id, lsn)",
            "2.28",
            {(0, Decimal("1.24"), Decimal("1.3"), "a", Decimal("1.3"), Decimal("2.3"))},
        ),
    ],
    ids=["latest", "history"],
)
def test_a_deletion_finds_its_row_also_if_the_table_rounds_keys_and_sequences(
    kind: int,
    columns: str,
    deleted_at: str,
    expected: set[tuple[Any, ...]],
    stack: Endpoints,
    spark: SparkSession,
) -> None:
    sink = sink_of(stack, kind)
    make(
        stack,
        f"CREATE TABLE {sink.target()} (list int, id numeric(10, 2), lsn numeric(10, 1), text text, {columns})",
    )
    change = (
        "SELECT 0 AS list, CAST(1.239 AS DECIMAL(9, 3)) AS id, CAST({} AS DECIMAL(9, 2)) AS lsn, 'a' AS text,"
        " '{}' AS op"
    )
    wrote(sink, spark.sql(change.format("1.26", "c")), 0)

    wrote(sink, spark.sql(change.format(deleted_at, "d")), 1)

    assert table(stack, sink) == expected


@pytest.mark.parametrize("kind", [1, 2])
@pytest.mark.parametrize(
    ("created", "widened", "stored", "key", "lsn"),
    [
        ("INT", "BIGINT", "bigint", "3000000000", "300000000{}"),
        ("DECIMAL(9, 2)", "DECIMAL(12, 3)", "numeric(12, 3)", "1.239", "1.00{}"),
    ],
)
def test_a_deletion_finds_its_row_after_its_key_and_its_sequence_were_widened(
    created: str,
    widened: str,
    stored: str,
    key: str,
    lsn: str,
    kind: int,
    stack: Endpoints,
    spark: SparkSession,
) -> None:
    sink = sink_of(stack, kind)

    def write(row_id: str, sequence: str, op: str, number_type: str, batch_id: int) -> None:
        numbers = f"CAST({row_id} AS {number_type}) AS id, CAST({sequence} AS {number_type}) AS lsn"
        wrote(sink, spark.sql(f"SELECT 0 AS list, {numbers}, 'a' AS text, '{op}' AS op"), batch_id)

    write("7", "0", "d", created, 0)
    names = ("id", "lsn", "__start_at", "__end_at") if kind == 2 else ("id", "lsn")
    make(
        stack,
        f"ALTER TABLE {sink.target()} {', '.join(f'ALTER {name} TYPE {stored}' for name in names)}",
    )

    # The last one comes after its own newer deletion.
    for batch_id, (number, op) in enumerate([(1, "c"), (3, "d"), (2, "u")], start=1):
        write(key, lsn.format(number), op, widened, batch_id)

    first, second, third = (Decimal(lsn.format(number)) for number in (1, 2, 3))
    history = {(0, Decimal(key), first, "a", first, second), (0, Decimal(key), second, "a", second, third)}
    assert table(stack, sink) == (history if kind == 2 else set())
