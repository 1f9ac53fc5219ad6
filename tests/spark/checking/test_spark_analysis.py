"""Spark's verdict on pipelines, at its place in the spec."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException

from millstream.checking.spark_analysis import list_spark_findings
from millstream.pipeline.spec_file import load_text

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.diagnostics.finding import Finding

SOURCES = """name: shop
params: {least: 3}
sources:
  orders:
    kafka: {bootstrap_servers: "localhost:1", subscribe: orders}
    schema: {user: string, amount: double, ts: timestamp}
  marked:
    kafka: {bootstrap_servers: "localhost:1", subscribe: marked}
    schema: {user: string, amount: double, ts: timestamp}
    watermark: {event_time: ts, delay_threshold: 1 minute}
"""


def verdict(spark: SparkSession, folder: Path, rest: str) -> tuple[list[Finding], str]:
    """The findings, and the characters that the first one marks."""
    text = SOURCES + rest
    loaded = load_text("pipeline.yml", text, folder, {})
    assert loaded.pipeline is not None, loaded.findings
    findings = list_spark_findings(spark, loaded)
    span = findings[0].span if findings else None
    if span is None or span.file != "pipeline.yml":
        return findings, ""
    return findings, text.splitlines()[span.line - 1][span.column - 1 :][: span.end_column - span.column]


def test_a_right_pipeline_with_parameters_has_no_finding(spark: SparkSession, tmp_path: Path) -> None:
    rest = "views:\n  big: SELECT * FROM orders WHERE amount > :least\nqueries:\n  big: {to: {console: {}}}\n"

    assert verdict(spark, tmp_path, rest)[0] == []


def test_files_whose_malformed_rows_end_the_query_have_no_finding(
    spark: SparkSession, tmp_path: Path
) -> None:
    text = """name: files
sources:
  rows: {json: {path: data}, schema: {id: string}, on_malformed: fail}
queries:
  rows: {to: {console: {}}}
"""
    loaded = load_text("pipeline.yml", text, tmp_path, {})

    assert list_spark_findings(spark, loaded) == []


def test_an_unknown_column_is_marked_in_its_block_scalar(spark: SparkSession, tmp_path: Path) -> None:
    rest = (
        "views:\n  big: |\n    SELECT user,\n           amuont\n    FROM orders\n"
        "queries:\n  big: {to: {console: {}}}\n"
    )

    (finding,), marked = verdict(spark, tmp_path, rest)

    assert (finding.code, marked) == ("MS111", "amuont")
    assert "[UNRESOLVED_COLUMN.WITH_SUGGESTION]" in finding.why
    assert "SQLSTATE" not in finding.why


def test_a_syntax_error_is_marked_where_spark_stops(spark: SparkSession, tmp_path: Path) -> None:
    rest = (
        "views:\n  big: |\n    SELECT user\n    FROM orders\n    GROOP BY user\n"
        "queries:\n  big: {to: {console: {}}}\n"
    )

    (finding,), marked = verdict(spark, tmp_path, rest)

    assert (finding.code, marked) == ("MS111", "BY")


def test_what_follows_from_a_broken_view_is_not_shown(spark: SparkSession, tmp_path: Path) -> None:
    rest = (
        "views:\n  one: SELECT nope FROM orders\n  two: SELECT nope FROM one\n"
        "queries:\n  two: {to: {console: {}}}\n"
    )

    (finding,), marked = verdict(spark, tmp_path, rest)

    assert marked == "nope"
    assert "view 'one'" in finding.message


def test_an_append_aggregation_without_watermark_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    rest = (
        "views:\n  n: SELECT user, count(*) AS n FROM orders GROUP BY user\n"
        "queries:\n  n:\n    output_mode: append\n    to: {console: {}}\n"
    )

    (finding,), _ = verdict(spark, tmp_path, rest)

    assert (finding.code, finding.query) == ("MS311", "n")
    assert "streaming aggregations without watermark" in finding.why


def test_an_outer_join_in_update_mode_is_marked_in_its_sql(spark: SparkSession, tmp_path: Path) -> None:
    rest = (
        "views:\n  pairs: |\n    SELECT a.user\n    FROM marked a\n    LEFT JOIN marked b ON a.user = b.user\n"
        "queries:\n  pairs: {output_mode: update, to: {console: {}}}\n"
    )

    (finding,), marked = verdict(spark, tmp_path, rest)

    assert "LeftOuter join" in finding.message
    assert marked == "LEFT JOIN marked b ON a.user = b.user"
    assert "EventTimeWatermark" not in finding.message


def test_a_sort_of_a_stream_is_marked_in_its_sql(spark: SparkSession, tmp_path: Path) -> None:
    rest = "views:\n  top: |\n    SELECT * FROM marked\n    ORDER BY amount\nqueries:\n  top: {to: {console: {}}}\n"

    (finding,), marked = verdict(spark, tmp_path, rest)

    assert (finding.code, marked) == ("MS311", "ORDER BY amount")


def test_a_function_that_returns_nothing_is_named_with_its_line(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "transforms.py").write_text("# a comment\ndef none(orders):\n    orders.select('user')\n")
    rest = 'views:\n  none_given: {python: "transforms:none"}\nqueries:\n  none_given: {to: {console: {}}}\n'

    (finding,), _ = verdict(spark, tmp_path, rest)

    assert (finding.code, finding.span.line if finding.span else 0) == ("MS112", 2)
    assert "must return a DataFrame; it returned None" in finding.message


def test_an_error_in_a_function_stands_at_the_line_that_raised(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "transforms.py").write_text("def odd(orders):\n    a = 1\n    return orders.select('nope')\n")
    rest = 'views:\n  odd: {python: "transforms:odd"}\nqueries:\n  odd: {to: {console: {}}}\n'

    (finding,), _ = verdict(spark, tmp_path, rest)

    assert finding.span is not None
    assert (finding.span.file.endswith("transforms.py"), finding.span.line) == (True, 3)


def test_findings_come_in_file_order(spark: SparkSession, tmp_path: Path) -> None:
    rest = (
        "views:\n  late: SELECT nope FROM early\n  early: SELECT * FROM orders\n  bad: SELECT nix FROM orders\n"
        "queries:\n  late: {to: {console: {}}}\n  bad: {to: {console: {}}}\n"
    )

    findings, _ = verdict(spark, tmp_path, rest)

    assert [finding.span.line for finding in findings if finding.span] == [12, 14]


def test_a_command_in_place_of_a_view_is_never_run(spark: SparkSession, tmp_path: Path) -> None:
    rest = "views:\n  odd: CREATE TEMPORARY VIEW made_by_a_check AS SELECT 1\nqueries:\n  odd: {to: {console: {}}}\n"

    verdict(spark, tmp_path, rest)

    assert not spark.catalog.tableExists("made_by_a_check")


def test_an_expectation_that_cannot_be_asked_is_told_at_its_place_and_views_are_judged_on(
    spark: SparkSession, tmp_path: Path
) -> None:
    rest = (
        "views:\n  big: {sql: SELECT user FROM orders,"
        ' expect: {known: user IS NOT NULL, paid: {that: "cents > 0"}}}\n'
        "queries:\n  big: {to: {console: {}}}\n"
    )

    (finding,), marked = verdict(spark, tmp_path, rest)

    assert (finding.code, marked) == ("MS111", '"cents > 0"')
    assert finding.message.startswith("expectation 'paid' of view 'big'")


def test_an_error_of_a_frame_after_a_check_is_the_one_of_spark(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for kind in ("SQL", "DataFrame"):
        monkeypatch.delitem(logging.Logger.manager.loggerDict, f"{kind}QueryContextLogger", raising=False)
    verdict(spark, tmp_path, "queries:\n  orders: {to: {console: {}}}\n")

    with pytest.raises(AnalysisException, match="nothing"):
        spark.range(1).select("nothing")
