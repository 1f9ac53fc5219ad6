"""Generated tests pass as they are written, and say whether a batch run gives the rows that they expect."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millstream.pipeline.spec_file import load_spec
from millstream.testing.files.loader import load
from millstream.testing.generated.generate import write_tests
from millstream.testing.runner.execute import run_case

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.testing.generated.generate import GeneratedTest

HEAD = """name: shop
sources:
  orders:
    kafka: {bootstrap_servers: "b:9092", subscribe: orders}
    format: raw
    keep: [timestamp]
  views:
    json: in
    schema: {page: string, user: string, at: timestamp}
    watermark: {event_time: at, delay_threshold: 10 minutes}
    on_malformed: fail
  users:
    csv: users
    schema: {user: string, country: string}
    static: true
views:
  counted: |
"""
QUERY = "queries:\n  counted:\n    output_mode: {mode}\n    to: {{console: {{}}}}\n"
HOURS = "SELECT window.start AS hour, page, count(*) AS n FROM views GROUP BY window(at, '1 hour'), page"
DECODED = (
    "SELECT decoded.* FROM "
    "(SELECT from_json(CAST(value AS STRING), 'id INT, kind STRING') AS decoded FROM orders)"
)


def write(spark: SparkSession, folder: Path, sql: str, mode: str = "append") -> GeneratedTest:
    """The generated test of one query, whose file is in the folder if it has one."""
    spec = folder / "pipeline.yml"
    spec.write_text(HEAD + f"    {sql}\n" + QUERY.format(mode=mode))
    pipeline = load_spec(spec, {}).pipeline
    assert pipeline is not None
    (test,) = write_tests(spark, pipeline, {}, folder / "scratch")
    return test


def test_a_test_of_windows_has_a_late_row_and_the_rows_of_a_batch_run(
    spark: SparkSession, tmp_path: Path
) -> None:
    test = write(spark, tmp_path, HOURS)

    assert test.is_batch_result
    assert test.sentence.endswith("gives the same rows, without the late row, which is dropped")
    (case,) = load(tmp_path / "tests" / "counted.yml", lambda _: {}).cases
    expected = [step.expected for step in case.steps]
    assert sum(step.dropped or 0 for step in expected) == 1
    assert sum(int(row["n"]) for step in expected for row in step.rows[""]) == 8
    assert all(step.watermark is not None for step in expected)


@pytest.mark.whole
@pytest.mark.parametrize(
    ("sql", "mode"),
    [
        (f"{DECODED} WHERE decoded.kind = 'sale'", "append"),
        (HOURS, "update"),
        (
            HOURS.replace("window(", "session_window(").replace("window.start", "session_window.start"),
            "append",
        ),
        ("SELECT kind, count(*) AS n FROM (" + DECODED + ") GROUP BY kind", "complete"),
        ("SELECT v.page, u.country FROM views v JOIN users u ON v.user = u.user", "append"),
        ("SELECT DISTINCT page, user FROM views", "update"),
    ],
)
def test_the_expected_rows_are_those_of_a_batch_run(
    spark: SparkSession, tmp_path: Path, sql: str, mode: str
) -> None:
    test = write(spark, tmp_path, sql, mode)

    assert test.is_batch_result, test.sentence
    (case,) = load(tmp_path / "tests" / "counted.yml", lambda _: {}).cases
    assert any(step.expected.rows[""] for step in case.steps)


@pytest.mark.whole
def test_a_generated_test_notices_that_the_query_changes(spark: SparkSession, tmp_path: Path) -> None:
    write(spark, tmp_path, HOURS)
    spec = tmp_path / "pipeline.yml"
    spec.write_text(spec.read_text().replace("10 minutes", "2 hours"))

    (case,) = load(tmp_path / "tests" / "counted.yml", lambda _: {}).cases

    assert not run_case(spark, case, tmp_path / "again").has_passed


@pytest.mark.whole
def test_a_column_that_differs_each_time_is_not_expected(spark: SparkSession, tmp_path: Path) -> None:
    test = write(spark, tmp_path, "SELECT page, uuid() AS id, current_timestamp() AS seen FROM views")

    assert test.sentence.endswith("gives the same rows (not compared: id, seen)")
    (case,) = load(tmp_path / "tests" / "counted.yml", lambda _: {}).cases
    assert set(case.steps[0].expected.rows[""][0]) == {"page", "seen"}


@pytest.mark.whole
def test_a_test_says_that_its_rows_are_only_what_the_query_returned(
    spark: SparkSession, tmp_path: Path
) -> None:
    test = write(
        spark, tmp_path, "SELECT page, count(*) AS n FROM views GROUP BY page HAVING n < 2", "update"
    )

    assert not test.is_batch_result
    assert "a batch run gives other rows" in test.sentence
    assert "What is expected is only what the query returned" in test.text.replace("\n# ", " ")


def test_a_query_without_a_test_has_the_reason(spark: SparkSession, tmp_path: Path) -> None:
    test = write(spark, tmp_path, "SELECT page, raise_error('no page') AS error FROM views")

    assert test.text == ""
    assert "no page" in test.sentence
    assert not (tmp_path / "tests").exists()


def test_a_query_whose_function_fails_for_null_has_a_test_without_null(
    spark: SparkSession, tmp_path: Path
) -> None:
    sql = "SELECT page, IF(user IS NULL, raise_error('no user'), user) AS user FROM views"

    test = write(spark, tmp_path, sql)

    assert test.is_batch_result, test.sentence
    assert "null" not in test.text


def test_columns_of_a_generated_test_are_null_in_a_row(spark: SparkSession, tmp_path: Path) -> None:
    test = write(spark, tmp_path, "SELECT page, user FROM views WHERE user IS NULL")

    assert test.is_batch_result, test.sentence
    (case,) = load(tmp_path / "tests" / "counted.yml", lambda _: {}).cases
    assert [row["user"] for step in case.steps for row in step.expected.rows[""]] == [None]
