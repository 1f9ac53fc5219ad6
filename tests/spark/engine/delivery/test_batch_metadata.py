"""What a batch's rows add up to: the same whatever their order, and another sum told when a batch comes again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from millstream.connectors.api.batch_ledger import parse_metadata
from millstream.engine.delivery.batch_metadata import CONTENT, rows_metric_columns
from millstream.engine.run import RunOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from spark.conftest import Project

pytestmark = pytest.mark.usefixtures("compiled")

ROWS = """
  SELECT id, concat('name ', id) AS name, CAST(id AS DECIMAL(20, 3)) / 7 AS share, array(id, NULL) AS list,
    map('a', id) AS pairs, named_struct('x', id) AS part, CAST(NULL AS DATE) AS day, parse_json('{"a": 1}') AS doc
  FROM range(1000)
"""


def content(frame: DataFrame) -> int:
    """The sum, as the metric of a query has it."""
    row = frame.select(*rows_metric_columns(frame.schema, content=True)).first()
    assert row is not None
    return int(row[CONTENT])


def test_no_order_and_no_cut_into_partitions_changes_it(spark: SparkSession) -> None:
    rows = spark.sql(ROWS)

    assert content(rows) == content(rows.repartition(7, "name").sortWithinPartitions("share"))


def test_one_other_value_changes_it(spark: SparkSession) -> None:
    rows = spark.sql(ROWS)

    assert content(rows) != content(rows.selectExpr("if(id = 500, 501, id) AS id", "* EXCEPT (id)"))


def test_many_rows_that_are_alike_do_not_overflow(spark: SparkSession) -> None:
    assert isinstance(content(spark.range(2_000_000).selectExpr("'always the same' AS text")), int)


def test_rows_of_maps_alone_have_none(spark: SparkSession) -> None:
    assert len(rows_metric_columns(spark.sql("SELECT map(1, 2) AS pairs").schema, content=True)) == 1


def repeated(project: Project, view: str) -> list[dict[str, Any]]:
    """What is told when the last batch of a query comes again."""
    out = str(project.folder / "out")
    query = {"from": "made", "to": {"delta": {"path": out, "merge_on": ["id"]}}}
    pipeline = project.pipeline(views={"made": {"sql": view}}, queries={"made": query})
    project.add_lines({"id": "a", "amount": 3, "at": "2026-01-01T12:01:00Z"})
    assert project.run(pipeline, RunOptions(until_caught_up=True))
    project.forget_last_commit("made")
    assert project.run(pipeline, RunOptions(until_caught_up=True))
    return [event.data for event in project.list_events("warning")]


@pytest.mark.parametrize("value", ["amount", "current_timestamp()"])
def test_a_batch_that_comes_again_with_the_same_rows_is_not_told(project: Project, value: str) -> None:
    assert repeated(project, f"SELECT id, {value} AS value FROM orders") == []


def test_a_batch_that_comes_again_with_other_rows_is_told_with_its_likely_cause(project: Project) -> None:
    (messages,) = repeated(project, "SELECT id, rand() AS value FROM orders")

    assert messages["batch"] == 0
    assert "was replayed with other rows than sink 'delta:out' has" in messages["what"]
    assert "rand()" in messages["fix"]


def test_an_entry_without_a_note_contradicts_nothing() -> None:
    metadata = parse_metadata({"offsets": ['{"t":{"0":7}}', None], "planned": 5})

    assert not metadata.contradicts(parse_metadata({}))
    assert not metadata.contradicts(parse_metadata({"offsets": ['{"t": {"0": 7}}', None], "planned": 5}))
    assert metadata.contradicts(parse_metadata({"offsets": ['{"t":{"0":8}}', None], "planned": 5}))
    assert metadata.contradicts(parse_metadata({"offsets": ['{"t":{"0":7}}', None], "planned": 6}))
