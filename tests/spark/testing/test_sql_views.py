"""A view becomes SQL where its test gives the same rows with it; every other view stays a function."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millstream.pipeline.spec_file import load_spec
from millstream.testing.files.loader import load
from millstream.testing.generated.generate import write_tests
from millstream.testing.generated.sql_views import write_sql_views

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.testing.generated.sql_views import SqlView

SPEC = """name: shop
sources:
  orders:
    json: in
    schema: {id: int, kind: string, amount: double, at: timestamp, user: 'struct<name: string>'}
    on_malformed: fail
  kinds:
    csv: kinds
    schema: {kind: string, label: string}
    static: true
queries:
  view:
    output_mode: MODE
    to: {console: {}}
"""
HEAD = "from pyspark.sql import functions as F\n\n\n"


def rewrite(spark: SparkSession, folder: Path, parameters: str, body: str, mode: str = "append") -> SqlView:
    """What becomes of a view with this body, which is written into a project with its test."""
    spec = folder / "pipeline.yml"
    spec.write_text(SPEC.replace("MODE", mode))
    (folder / "transforms.py").write_text(f"{HEAD}def view({parameters}):\n    return {body}\n")
    pipeline = load_spec(spec, {}).pipeline
    assert pipeline is not None
    (test,) = write_tests(spark, pipeline, {}, folder / "scratch")
    assert test.text, test.sentence
    (view,) = write_sql_views(spark, spec, {}, folder / "scratch")
    return view


def written_sql(folder: Path) -> str:
    """The SQL of the view, with one space between words."""
    pipeline = load_spec(folder / "pipeline.yml", {}).pipeline
    assert pipeline is not None
    return " ".join((pipeline.views["view"].sql or "").split())


def test_a_filter_and_a_projection_become_sql(spark: SparkSession, tmp_path: Path) -> None:
    body = (
        "orders.where((F.col('amount') > 1) & (orders.kind != 'x')).select('id', F.upper('kind').alias('k'))"
    )

    view = rewrite(spark, tmp_path, "orders", body)

    assert view.reason == ""
    assert written_sql(tmp_path).startswith("SELECT id, upper(kind) AS k FROM orders WHERE")
    assert not (tmp_path / "transforms.py").exists()


@pytest.mark.whole
@pytest.mark.parametrize(
    ("parameters", "body", "mode", "sql"),
    [
        ("orders", "orders.groupBy('kind').agg(F.sum('amount').alias('total'))", "complete", "GROUP BY kind"),
        ("orders", "orders.groupBy('kind').count().where('count > 1')", "update", "WHERE count > 1"),
        ("orders, kinds", "orders.join(kinds, 'kind').select('id', 'label')", "append", "JOIN kinds USING"),
        ("orders", "orders.withColumn('day', F.to_date('at')).drop('user', 'at')", "append", "AS `day`"),
        ("orders", "orders.select('id', 'user.name').withColumnRenamed('name', 'who')", "append", "AS `who`"),
    ],
)
def test_calls_that_sql_can_say_become_sql(
    spark: SparkSession, tmp_path: Path, parameters: str, body: str, mode: str, sql: str
) -> None:
    view = rewrite(spark, tmp_path, parameters, body, mode)

    assert view.reason == ""
    assert sql in written_sql(tmp_path)


@pytest.mark.whole
@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("orders.withWatermark('at', '1 hour')", "withWatermark() has no SQL here"),
        ("orders.dropDuplicates(['id'])", "dropDuplicates() has no SQL here"),
        ("orders.select(F.udf(lambda value: value)('kind').alias('k'))", ""),
    ],
)
def test_a_view_that_sql_cannot_say_stays_a_function(
    spark: SparkSession, tmp_path: Path, body: str, reason: str
) -> None:
    before = SPEC.replace("MODE", "append")

    view = rewrite(spark, tmp_path, "orders", body)

    assert reason in view.reason
    assert view.reason
    assert (tmp_path / "pipeline.yml").read_text() == before
    assert f"return {body}" in (tmp_path / "transforms.py").read_text()


@pytest.mark.parametrize("condition", ["amount > 100", "id >= 1000", "id < -3"])
def test_the_test_of_a_filter_has_rows_that_pass_it(
    spark: SparkSession, tmp_path: Path, condition: str
) -> None:
    view = rewrite(spark, tmp_path, "orders", f"orders.where('{condition}')")

    (case,) = load(tmp_path / "tests" / "view.yml", lambda _: {}).cases
    assert any(step.expected.rows[""] for step in case.steps)
    assert view.reason == ""


def test_a_view_stays_a_function_if_no_row_of_its_test_passes(spark: SparkSession, tmp_path: Path) -> None:
    view = rewrite(spark, tmp_path, "orders", "orders.where(F.length('kind') > 40)")

    assert view.reason == "its test expects no row, so it cannot show that SQL gives the same rows"
    text = (tmp_path / "tests" / "view.yml").read_text().replace("\n# ", " ")
    assert "What is expected is only what the query returned" in text
    assert "no generated row passes the query" in text
