"""Expectations of Databricks that keep the row of an invalid message from a table, so that MS553 says nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millstream.checking.scripts.check import check_project_at

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.checking.check import CheckResult

FLOW = """
    raw = spark.readStream.schema("payload STRING, ferry STRING").text("/Volumes/port/tickets")
    parsed = raw.select("ferry", from_json("payload", "seat INT, price DOUBLE").alias("ticket"))
    return parsed.select("ferry", "ticket.*")
"""


def check_python(spark: SparkSession, folder: Path, text: str) -> CheckResult:
    file = folder / "tickets.py"
    file.write_text(
        f"from pyspark import pipelines as dp\nfrom pyspark.sql.functions import col, from_json\n\n{text}"
    )
    return check_project_at(spark, file)


def warnings(checked: CheckResult) -> list[tuple[str, str | None]]:
    """Return the code and the query of each error and warning."""
    return [(one.code, one.query) for one in checked.findings if str(one.severity) != "info"]


@pytest.mark.parametrize(
    ("decorator", "is_refusing"),
    [
        ('@dp.expect_or_drop("known", "seat IS NOT NULL")', True),
        ('@dp.expect_or_fail(name="paid", condition="price > 0")', True),
        ('@dp.expect_all_or_drop({"named": "ferry IS NOT NULL", "near": "seat IN (1, 2)"})', True),
        ('@dp.expect_or_drop("known", col("seat").isNotNull())', True),
        ('@dp.expect("known", "seat IS NOT NULL")', False),
        ('@dp.expect_or_drop("named", "length(ferry) > 2")', False),
        ('@dp.expect_or_drop("known", "ferry = \'north\' OR seat > 0")', False),
        ('@dp.expect_or_drop("wrong", "seat IS NOT")', False),
    ],
)
def test_a_decorator_may_drop_the_row_of_an_invalid_message(
    spark: SparkSession, tmp_path: Path, decorator: str, *, is_refusing: bool
) -> None:
    checked = check_python(spark, tmp_path, f"@dp.table\n{decorator}\ndef tickets():{FLOW}")

    assert [(query.name, query.reason) for query in checked.judged or ()] == [("tickets", "")]
    assert warnings(checked) == ([] if is_refusing else [("MS553", "tickets")])


@pytest.mark.parametrize("module", ["import dlt as dp", "from pyspark import pipelines as dp"])
@pytest.mark.parametrize(("setting", "is_refusing"), [("expect_all_or_drop", True), ("expect_all", False)])
def test_a_setting_of_a_table_may_drop_the_row_of_an_invalid_message(
    spark: SparkSession, tmp_path: Path, module: str, setting: str, *, is_refusing: bool
) -> None:
    table = f'{module}\ndp.create_streaming_table(name="tickets", {setting}={{"known": "seat IS NOT NULL"}})'
    text = f'{table}\n\n@dp.append_flow(target="tickets", name="sold")\ndef sold():{FLOW}'

    assert warnings(check_python(spark, tmp_path, text)) == ([] if is_refusing else [("MS553", "sold")])


def test_the_expectation_of_a_view_counts_for_the_table_that_reads_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    text = f"""
@dp.temporary_view
@dp.expect_or_drop("known", "seat IS NOT NULL")
def valid():{FLOW}

@dp.temporary_view
def anything():{FLOW}

@dp.table
def sold():
    return spark.readStream.table("valid")

@dp.table
def offered():
    return spark.readStream.table("anything")
"""
    assert warnings(check_python(spark, tmp_path, text)) == [("MS553", "offered")]


@pytest.mark.parametrize(
    ("violation", "is_refusing"),
    [("ON VIOLATION DROP ROW", True), ("ON VIOLATION FAIL UPDATE", True), ("", False)],
)
def test_a_constraint_of_sql_may_drop_the_row_of_an_invalid_message(
    spark: SparkSession, tmp_path: Path, violation: str, *, is_refusing: bool
) -> None:
    (tmp_path / "tickets.sql").write_text(f"""
CREATE OR REFRESH STREAMING TABLE tickets (
  CONSTRAINT known EXPECT (length('(') = 1) ON VIOLATION DROP ROW,
  CONSTRAINT sold EXPECT (ticket.seat > 0) {violation}
) AS SELECT from_json(value, 'seat INT') AS ticket FROM STREAM read_files('/Volumes/port/tickets', format => 'text');
""")
    checked = check_project_at(spark, tmp_path / "tickets.sql")

    assert warnings(checked) == ([] if is_refusing else [("MS553", "tickets")])


def test_an_expectation_may_stand_above_a_table_whose_name_has_a_catalog_of_the_settings(
    spark: SparkSession, tmp_path: Path
) -> None:
    text = """
catalog = spark.conf.get("own.catalog")

@dp.expect_or_drop("known", "id IS NOT NULL")
@dp.table(name=f"{catalog}.bronze.copied")
def copied():
    return spark.readStream.format("rate").load().selectExpr("value AS id", "timestamp AS at")

@dp.table
def read():
    return spark.readStream.table(f"{catalog}.bronze.copied").select("nothing")
"""
    (finding,) = (one for one in check_python(spark, tmp_path, text).findings if one.code == "MS118")

    assert "flow 'read': A column" in finding.message
