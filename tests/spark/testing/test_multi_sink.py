"""What the functions and the class of the example multi_sink do with what comes again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from delta_tables import read_rows
from local_frames import create_frame
from millstream.connectors.api.writer import SinkIdentity
from millstream.connectors.foreach.writer import ForeachWriter
from millstream.connectors.foreach_batch.writer import Batch
from millstream.frames.user_functions import find_function
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.usefixtures("small_batches")

EXAMPLE = Path(__file__).parents[3] / "examples" / "multi_sink"


@pytest.fixture
def deliver(tmp_path: Path) -> Any:
    """Calls `user_totals` with a batch of the query with that id."""
    function = find_function("deliveries:user_totals", EXAMPLE)

    def call(frame: DataFrame, number: int, query_id: str = "first") -> None:
        function(frame, Batch(number, "multi_sink", "events", query_id, {"path": str(tmp_path / "totals")}))

    return call


def batch(spark: SparkSession, *rows: tuple[str | None, float | None]) -> DataFrame:
    """Events of users with amounts."""
    return create_frame(spark, rows, "user_id STRING, amount DOUBLE")


def totals(tmp_path: Path) -> dict[str | None, tuple[int, float | None]]:
    """Events and amount of each user."""
    rows = read_rows(tmp_path / "totals", "user_id", "event_count", "total_amount")
    return {user: (events, amount) for user, events, amount in rows}


def test_batches_add_up_and_one_that_comes_again_adds_nothing(
    spark: SparkSession, tmp_path: Path, deliver: Any
) -> None:
    first = batch(spark, ("ann", 1.0), ("ann", 2.0), ("bob", 5.0), (None, 1.0), ("eve", None))
    second = batch(spark, ("ann", 4.0), (None, 2.0), ("eve", 3.0))

    deliver(first, 0)
    deliver(first, 0)
    deliver(second, 1)
    deliver(second, 1)

    # A user without a name is one user, and a missing amount adds nothing.
    expected = {"ann": (3, 7.0), "bob": (1, 5.0), None: (2, 3.0), "eve": (2, 3.0)}
    assert totals(tmp_path) == expected

    # Number 0 of a fresh checkpoint is not the batch that the table has.
    deliver(batch(spark, ("ann", 2.0)), 0, "second")

    assert totals(tmp_path) == {**expected, "ann": (4, 9.0)}


def test_without_its_condition_a_batch_that_comes_again_is_added_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    text = (EXAMPLE / "deliveries.py").read_text(encoding="utf-8")
    guarded = " AND (total.query_id <> batch.query_id OR total.batch_id < batch.batch_id)"
    assert guarded in text
    (tmp_path / "deliveries.py").write_text(text.replace(guarded, ""), encoding="utf-8")
    function = find_function("deliveries:user_totals", tmp_path)
    second = Batch(0, "multi_sink", "events", "first", {"path": str(tmp_path / "totals")})

    for _ in range(2):
        function(batch(spark, ("ann", 1.0), ("ann", 2.0), ("bob", 5.0)), second)

    assert totals(tmp_path) == {"ann": (4, 6.0), "bob": (2, 10.0)}


def test_an_empty_batch_touches_neither_table_nor_database(
    spark: SparkSession, tmp_path: Path, deliver: Any
) -> None:
    empty = batch(spark).where("false")

    deliver(empty, 0)
    find_function("deliveries:batch_log", EXAMPLE)(empty, Batch(0, "multi_sink", "events", "first", {}))

    assert not (tmp_path / "totals").exists()


def test_a_row_that_comes_again_to_another_task_replaces_its_letter(
    spark: SparkSession, tmp_path: Path
) -> None:
    text = (EXAMPLE / "deliveries.py").read_text(encoding="utf-8")
    (tmp_path / "deliveries.py").write_text(text, encoding="utf-8")
    identity = SinkIdentity("multi_sink", "large_purchases", "first", "foreach:Outbox", OutputMode.APPEND)
    writer = ForeachWriter(find_function("deliveries:Outbox", tmp_path), identity)
    rows = spark.createDataFrame(
        [("e1", "ann", 99.5), ("e2", "bob", 99.25)], "event_id STRING, user_id STRING, amount DOUBLE"
    )

    writer.write(rows.repartition(1), 0)
    writer.write(rows.repartition(2), 0)

    letters = {path.name: json.loads(path.read_text()) for path in (tmp_path / "lake" / "outbox").iterdir()}
    assert sorted(letters) == ["e1.json", "e2.json"]
    assert letters["e2.json"] == {"to": "bob", "text": "Thank you for your purchase of 99.25."}
