"""Changes into a Delta table: whatever their order and their batches, one table follows."""

from __future__ import annotations

import itertools
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F

import changes
import sweep
from delta_tables import read_rows
from millstream.connectors.api.writer import SinkIdentity
from millstream.connectors.delta.sink import DeltaSink
from millstream.connectors.delta.writer import DeltaWriter
from millstream.diagnostics.failure import MillstreamError, NotReady
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.usefixtures("small_batches")

_count = itertools.count()
LATEST = ["list", "id", "lsn", "text"]
HISTORY = [*LATEST, "__start_at", "__end_at"]


def sink_of(folder: Path, kind: int = 1, **cdc: Any) -> DeltaSink:
    fields = changes.CDC | {"stored_as_scd_type": kind} | cdc
    return DeltaSink.model_validate({"path": str(folder / f"t{next(_count)}"), "cdc": fields})


def opened(spark: SparkSession, sink: DeltaSink, frame: DataFrame) -> DeltaWriter:
    writer = DeltaWriter(sink, SinkIdentity("shop", "orders", "one", "delta:o", OutputMode.APPEND))
    writer.open(spark, frame.schema)
    return writer


def table(sink: DeltaSink, kind: int = 1) -> set[tuple[Any, ...]]:
    rows = read_rows(str(sink.path), *(HISTORY if kind == 2 else LATEST))
    assert len(set(rows)) == len(rows)
    return set(rows)


def wrote(spark: SparkSession, sink: DeltaSink, *batches: str) -> None:
    """Batches as rows of VALUES: id, lsn, text, op."""
    for number, rows in enumerate(batches):
        frame = spark.sql(f"SELECT 0 AS list, id, lsn, text, op FROM VALUES {rows} AS t(id, lsn, text, op)")
        opened(spark, sink, frame).write(frame, number)


@pytest.mark.parametrize("kind", [pytest.param(1, marks=pytest.mark.whole), 2])
def test_any_order_and_any_batches_make_the_table_that_plain_python_makes(
    kind: int, spark: SparkSession, tmp_path: Path
) -> None:
    batches = changes.drawn(lists=300, batches=sweep.size(3, 4, "MILLSTREAM_BATCHES"), seed=7)
    sink, everything = sink_of(tmp_path, kind), [change for batch in batches for change in batch]
    for number, batch in enumerate(batches):
        frame = changes.frame(spark, batch)
        writer = opened(spark, sink, frame)
        if number % 2:
            # A driver that died after it had kept the deletions, and before the commit.
            assert writer._changes is not None
            writer._changes.keep_deletions(frame)
        writer.write(frame, number)

    expected = changes.history(everything) if kind == 2 else changes.latest(everything)
    assert table(sink, kind) == expected
    outcome = sink.outcome(changes.frame(spark, everything))
    assert outcome is not None
    assert {tuple(row) for row in outcome.collect()} == expected


@pytest.mark.parametrize("kind", [1, pytest.param(2, marks=pytest.mark.whole)])
def test_a_batch_that_comes_again_changes_nothing(kind: int, spark: SparkSession, tmp_path: Path) -> None:
    first, second = changes.drawn(lists=20, batches=2, seed=3)
    sink = sink_of(tmp_path, kind)
    for number, batch in enumerate((first, second)):
        opened(spark, sink, changes.frame(spark, batch)).write(changes.frame(spark, batch), number)
    before = table(sink, kind)
    old = opened(spark, sink, changes.frame(spark, first))
    old._last = None  # as a driver that looked before the other wrote

    old.write(changes.frame(spark, first), 0)

    assert opened(spark, sink, changes.frame(spark, second)).write(changes.frame(spark, second), 1).is_skipped
    assert table(sink, kind) == before


def test_what_comes_after_its_own_newer_deletion_stays_deleted(spark: SparkSession, tmp_path: Path) -> None:
    sink = sink_of(tmp_path)

    wrote(
        spark,
        sink,
        "(1, 1, 'a', 'c'), (2, 9, '', 'd'), (3, 5, '', 'd')",
        "(1, 5, '', 'd')",
        "(1, 3, 'late', 'u'), (2, 8, 'x', 'c'), (3, 6, 'back', 'c')",
    )

    assert table(sink) == {(0, 3, 6, "back")}


@pytest.mark.parametrize("kind", [1, 2])
def test_changes_of_an_empty_key_in_a_partition_column_are_changes_of_one_row(
    kind: int, spark: SparkSession, tmp_path: Path
) -> None:
    sink = sink_of(tmp_path, kind, keys=["text", "id"]).model_copy(update={"partition_by": ("text",)})

    wrote(spark, sink, "(1, 1, '', 'c'), (2, 1, '', 'c')", "(1, 2, '', 'u'), (2, 2, '', 'd')")

    current = {row[:4] for row in table(sink, kind) if row[-1] is None or kind == 1}
    assert current == {(0, 1, 2, None)}


@pytest.mark.parametrize(
    ("kind", "created", "widened", "key", "lsn"),
    [
        (1, "INT", "BIGINT", "3000000000", "300000000{}"),
        (1, "DECIMAL(9, 2)", "DECIMAL(12, 3)", "1.239", "1.00{}"),
        (2, "DECIMAL(9, 2)", "DECIMAL(12, 3)", "1.239", "1.00{}"),
    ],
)
def test_a_deletion_finds_its_row_after_its_key_and_its_sequence_were_widened(
    kind: int, created: str, widened: str, key: str, lsn: str, spark: SparkSession, tmp_path: Path
) -> None:
    if kind == 1:
        sink = sink_of(tmp_path)
    else:
        fields = changes.CDC | {"stored_as_scd_type": 2}
        sink = DeltaSink.model_validate({"table": f"changes_{next(_count)}", "cdc": fields})

    def write(row_id: str, sequence: str, op: str, number_type: str, batch_id: int) -> None:
        numbers = f"CAST({row_id} AS {number_type}) AS id, CAST({sequence} AS {number_type}) AS lsn"
        frame = spark.sql(f"SELECT 0 AS list, {numbers}, 'a' AS text, '{op}' AS op")
        opened(spark, sink, frame).write(frame, batch_id)

    write("7", "0", "d", created, 0)
    rows = spark.table(sink.place)
    numbers = [name for name in rows.columns if name not in ("list", "text")]
    rows = rows.withColumns({name: F.col(name).cast(widened) for name in numbers})
    overwrite = rows.write.format("delta").mode("overwrite").option("overwriteSchema", "true")
    overwrite.save(str(sink.path)) if sink.path else overwrite.saveAsTable(sink.place)

    # The last one comes after its own newer deletion.
    for batch_id, (number, op) in enumerate([(1, "c"), (3, "d"), (4, "d"), (2, "u")], start=1):
        write(key, lsn.format(number), op, widened, batch_id)

    first, second, third = (Decimal(lsn.format(number)) for number in (1, 2, 3))
    history = [(0, Decimal(key), first, "a", first, second), (0, Decimal(key), second, "a", second, third)]
    found = spark.table(sink.place).select(HISTORY if kind == 2 else LATEST).collect()
    assert sorted(map(tuple, found)) == (history if kind == 2 else [])
    commits = spark.sql(f"DESCRIBE HISTORY {sink.deletions.place}").collect()
    # It was created and rewritten once.
    assert len([commit for commit in commits if commit.operation != "MERGE"]) == 2


@pytest.mark.whole  # many of the changes above are such versions
def test_a_late_version_splits_the_interval_that_it_falls_into(spark: SparkSession, tmp_path: Path) -> None:
    sink = sink_of(tmp_path, 2)

    wrote(spark, sink, "(1, 10, 'a', 'c'), (1, 30, 'c', 'u')", "(1, 20, 'b', 'u'), (1, 40, '', 'd')")

    assert table(sink, 2) == {
        (0, 1, 10, "a", 10, 20), (0, 1, 20, "b", 20, 30), (0, 1, 30, "c", 30, 40)
    }  # fmt: skip


def test_a_history_is_not_taken_for_a_latest_state(spark: SparkSession, tmp_path: Path) -> None:
    sink = sink_of(tmp_path, 2)
    wrote(spark, sink, "(1, 10, 'a', 'c')")
    other = sink_of(tmp_path).model_copy(update={"path": sink.path})

    with pytest.raises(NotReady, match="contains a history, but the spec has stored_as_scd_type: 1"):
        wrote(spark, other, "(1, 20, 'b', 'u')")


def test_deletions_are_in_no_row_that_a_reader_finds(spark: SparkSession, tmp_path: Path) -> None:
    sink = sink_of(tmp_path)

    wrote(spark, sink, "(1, 1, 'a', 'c'), (2, 9, '', 'd')")

    frame = spark.read.format("delta").load(str(sink.path))
    assert frame.columns == LATEST
    assert [tuple(row) for row in frame.collect()] == [(0, 1, 1, "a")]


def test_a_change_without_a_sequence_ends_the_batch_with_its_key(spark: SparkSession, tmp_path: Path) -> None:
    sink = sink_of(tmp_path)

    with pytest.raises(MillstreamError, match=r"has no sequence value: .*'lsn' is null, key \{.*\"id\":7"):
        wrote(spark, sink, "(1, 1, 'a', 'c'), (7, CAST(NULL AS INT), 'b', 'c')")


def test_a_condition_over_no_column_of_the_query_is_told(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(NotReady, match=r"apply_as_deletes of .* is not a valid condition"):
        wrote(spark, sink_of(tmp_path, apply_as_deletes="kind = 'D'"), "(1, 1, 'a', 'c')")


def test_deletions_of_a_catalog_table_that_was_dropped_do_not_hide_rows_of_the_new_one(
    spark: SparkSession,
) -> None:
    name = f"changes_{next(_count)}"
    sink = DeltaSink.model_validate({"table": name, "cdc": changes.CDC})
    wrote(spark, sink, "(1, 5, 'a', 'c'), (2, 6, null, 'd')")
    spark.sql(f"DROP TABLE {name}")

    wrote(spark, sink, "(2, 3, 'b', 'c'), (3, 4, null, 'd')", "(3, 2, 'late', 'c'), (1, 1, 'c', 'c')")

    assert {tuple(row) for row in spark.table(name).select(*LATEST).collect()} == {
        (0, 1, 1, "c"),
        (0, 2, 3, "b"),
    }
