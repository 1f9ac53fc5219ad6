"""Declarative projects and the projects that were written from them give the same tables over the same rows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException

from millstream.checking.scripts.declarative.expectations import DeclaredExpectation, apply_expectations
from millstream.checking.scripts.migration.flow_migration import migrate_project
from millstream.proof.migration.prove_migration import prove_flows
from millstream.spec.expectation import Otherwise

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.proof.migration.verdict import QueryVerdict

pytestmark = pytest.mark.usefixtures("small_batches", "three_batches")

SPEC = """name: shop
storage: file:///lake/shop
libraries:
  - glob: {include: flows/**}
"""
SOURCES = """from pyspark import pipelines as dp
from pyspark.sql import functions as F

@dp.temporary_view
def orders():
    columns = "id INT, user STRING, kind STRING, amount DOUBLE, at TIMESTAMP"
    return spark.readStream.schema(columns).json("/landing/orders")

"""
TABLES = (
    SOURCES
    + """
@dp.table
def sales():
    return spark.readStream.table("orders").where("kind = 'sale'").select("id", "user", "amount", "at")

@dp.materialized_view
def totals():
    return spark.read.table("sales").groupBy("user").agg(F.sum("amount").alias("total"))

@dp.table
def hours():
    late = spark.readStream.table("sales").withWatermark("at", "10 minutes")
    counted = late.groupBy(F.window("at", "1 hour"), "user").count()
    return counted.select(F.col("window.start").alias("hour"), "user", "count")
"""
)
CHANGES = """
dp.create_streaming_table("TABLE")
dp.create_auto_cdc_flow(target="TABLE", source="orders", keys=["id"], sequence_by=F.col("at"),
    apply_as_deletes=F.expr("kind = 'gone'"), except_column_list=["kind"], stored_as_scd_type=SCD_TYPE)
"""
LATEST = CHANGES.replace("TABLE", "latest").replace("SCD_TYPE", "1")
HISTORY = CHANGES.replace("TABLE", "history").replace("SCD_TYPE", "2")
EXPECTED = SOURCES.replace("from pyspark import pipelines as dp", "import dlt as dp") + (
    """
@dp.table
@dp.expect_or_drop("is a sale", "kind = 'sale'")
def sales():
    return spark.readStream.table("orders").select("id", "kind", "amount")
"""
)
SALES_ONLY = SOURCES.replace("from pyspark import pipelines as dp", "import dlt as dp") + (
    """
@dp.view
@dp.expect_or_drop("is a sale", "kind = 'sale'")
def sold():
    return spark.readStream.table("orders").select("id", "kind")

@dp.table
def of_view():
    return spark.readStream.table("sold")

dp.create_streaming_table("of_setting", expect_all_or_drop={"is a sale": "kind = 'sale'"})

@dp.append_flow(target="of_setting")
def added():
    return spark.readStream.table("orders").select("id", "kind")
"""
)
SALES_ONLY_SQL = """
CREATE OR REFRESH STREAMING TABLE of_constraint (
  CONSTRAINT `is a sale` EXPECT (kind = 'sale') ON VIOLATION DROP ROW,
  CONSTRAINT `has an amount` EXPECT (amount IS NOT NULL)
) AS SELECT id, kind, amount FROM STREAM(orders);
"""
SQL = """
CREATE STREAMING TABLE kinds AS SELECT id, upper(kind) AS kind FROM STREAM orders;
CREATE MATERIALIZED VIEW counts AS SELECT kind, count(*) AS n FROM kinds GROUP BY kind;
"""


def order(id: int, user: str, kind: str, at: str) -> dict[str, Any]:
    """An order on the first of January."""
    return {"id": id, "user": user, "kind": kind, "amount": 1.5, "at": f"2026-01-01 {at}:00"}


# Two batches, which cost less than the five of generated rows. An old version of the third order comes late; the last
# row closes every window before it.
ORDERS = (
    (order(1, "ann", "sale", "12:01"), order(2, "bob", "gone", "12:05"), order(3, "bob", "sale", "12:30")),
    (order(1, "ann", "gone", "12:40"), order(3, "bob", "other", "12:10"), order(4, "ann", "sale", "20:00")),
)


def write(folder: Path, python: str, sql: str = "") -> Path:
    """A project of these files; its spec."""
    (folder / "flows").mkdir()
    (folder / "flows" / "tables.py").write_text(python)
    if sql:
        (folder / "flows" / "tables.sql").write_text(sql)
    spec = folder / "spark-pipeline.yml"
    spec.write_text(SPEC)
    return spec


def prove(
    spark: SparkSession,
    folder: Path,
    python: str,
    sql: str = "",
    change: str = "",
    *,
    generated: bool = False,
) -> list[QueryVerdict]:
    """The verdicts on a project over `ORDERS`, after a text of its spec or code was left out.

    Code with `dlt` is that of Databricks, without a spec of Spark.
    """
    spec, project, orders = write(folder, python, sql), folder / "project", folder / "orders"
    spec = spec.parent / "flows" if "import dlt" in python and sql else spec
    project.mkdir()
    for name, content in migrate_project(spark, spec).files.items():
        (project / name).write_text(content.replace(change, "") if change else content)
    if generated:
        return prove_flows(spark, spec, project)
    orders.mkdir()
    for number, rows in enumerate(ORDERS):
        (orders / f"{number}.json").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return prove_flows(spark, spec, project, {"orders": orders})


@pytest.mark.parametrize(
    ("python", "sql", "tables"),
    [
        (TABLES, "", ["sales", "totals", "hours"]),
        (EXPECTED, "", ["sales"]),
        pytest.param(SOURCES, SQL, ["kinds", "counts"], marks=pytest.mark.whole),
    ],
    ids=["python", "expectations", "sql"],
)
def test_a_project_gives_the_tables_of_the_flows(
    spark: SparkSession, tmp_path: Path, python: str, sql: str, tables: list[str]
) -> None:
    verdicts = prove(spark, tmp_path, python, sql, generated=True)

    assert [(verdict.query, str(verdict.outcome)) for verdict in verdicts] == [
        (table, "same") for table in tables
    ], [str(verdict) for verdict in verdicts]
    assert all(verdict.line and verdict.rows for verdict in verdicts)
    assert {path.name for path in tmp_path.iterdir()} == {"flows", "project", "spark-pipeline.yml"}


def test_expectations_of_a_view_a_setting_and_a_statement_drop_the_rows_that_they_dropped(
    spark: SparkSession, tmp_path: Path
) -> None:
    verdicts = prove(spark, tmp_path, SALES_ONLY, SALES_ONLY_SQL)

    assert [(verdict.query, str(verdict.outcome), verdict.rows) for verdict in verdicts] == [
        (table, "same", 3) for table in ("of_view", "of_setting", "of_constraint")
    ], [str(verdict) for verdict in verdicts]


def test_a_row_that_breaks_an_expectation_ends_a_flow_which_should_fail(spark: SparkSession) -> None:
    expectation = DeclaredExpectation("positive", "id > 0", Otherwise.FAIL)

    assert apply_expectations(spark.range(1, 3), [expectation]).count() == 2
    with pytest.raises(PySparkException, match="positive"):
        apply_expectations(spark.range(2), [expectation]).collect()


def test_expectations_of_a_table_of_changes_drop_changes(spark: SparkSession, tmp_path: Path) -> None:
    declared = LATEST.replace('("latest")', '("latest", expect_all_or_drop={"is of ann": "user = \'ann\'"})')
    python = (SOURCES + declared).replace("from pyspark import pipelines as dp", "import dlt as dp")

    (latest,) = prove(spark, tmp_path, python, "-- nothing more")

    assert (str(latest.outcome), latest.rows) == ("same", 1), str(latest)


def test_a_project_that_was_changed_differs_in_that_table_and_those_that_read_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    verdicts = prove(spark, tmp_path, TABLES, change=".where(\"kind = 'sale'\")")

    assert [str(verdict.outcome) for verdict in verdicts] == ["different"] * 3
    assert all(verdict.only_in_project for verdict in verdicts)


def test_a_table_of_changes_is_the_same_and_one_with_history_is_not_compared_and_the_reason_is_given(
    spark: SparkSession, tmp_path: Path
) -> None:
    latest, history = prove(spark, tmp_path, SOURCES + LATEST + HISTORY)

    assert (latest.query, str(latest.outcome)) == ("latest", "same"), str(latest)
    assert latest.line
    assert latest.rows == 2
    assert str(history) == (
        "query 'history' (line 14): not compared: the proof does not run"
        " an AUTO CDC flow that keeps the history of each key"
    )
