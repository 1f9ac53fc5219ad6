"""The whole check: rules, Spark's verdict and plans as one list, each cause once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millstream.checking.batch_check import Checker
from millstream.checking.check import CheckResult, check
from millstream.checking.targets import TargetKind, find_targets
from millstream.pipeline.spec_file import load_spec, load_text

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

HEAD = """name: shop
sources:
  orders:
    kafka: {bootstrap_servers: "localhost:1", subscribe: orders}
    schema: {user: string, amount: double, ts: timestamp}
"""
COUNT = """views:
  n: |
    SELECT window(ts, '1 minute') AS m, count(*) AS n
    FROM orders
    GROUP BY 1
queries:
  n: {output_mode: append, to: {console: {}}}
"""
PYTHON = """views:
  big: {python: "transforms:big"}
queries:
  big: {to: {console: {}}}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def checked(text: str, folder: Path, spark: SparkSession) -> CheckResult:
    return check(load_text("pipeline.yml", text, folder, {}), spark)


def codes(found: CheckResult) -> list[str]:
    return [finding.code for finding in found.findings]


def test_a_rule_with_its_cure_stands_in_the_place_of_sparks_words(spark: SparkSession, folder: Path) -> None:
    actual = checked(HEAD + COUNT, folder, spark)

    assert codes(actual) == ["MS201"]
    assert [finding.code for finding in actual.verdict] == ["MS311"]


def test_what_is_ignored_does_not_hide_that_spark_refuses(spark: SparkSession, folder: Path) -> None:
    actual = checked(HEAD + "rules: {MS201: ignore}\n" + COUNT, folder, spark)

    assert codes(actual) == ["MS311"]
    assert actual.has_errors


def test_what_is_allowed_does_not_hide_it_either(spark: SparkSession, folder: Path) -> None:
    allowed = COUNT.replace("FROM orders", "-- millstream: allow MS201 — read for an hour\n    FROM orders")

    assert codes(checked(HEAD + allowed, folder, spark)) == ["MS311"]


def test_a_fault_of_a_view_is_told_once_however_many_queries_read_it(
    spark: SparkSession, folder: Path
) -> None:
    rest = """views:
  top: |
    SELECT * FROM orders
    ORDER BY amount
queries:
  top: {to: {console: {}}}
  again: {from: top, to: {console: {}}}
"""

    assert codes(checked(HEAD + rest, folder, spark)) == ["MS311"]


def test_a_line_of_a_function_is_shown(spark: SparkSession, folder: Path) -> None:
    (folder / "transforms.py").write_text("def big(orders):\n    return orders.where('nope > 1')\n")

    actual = checked(HEAD + PYTHON, folder, spark)

    assert actual.findings[0].span is not None
    assert actual.findings[0].span.file == "transforms.py"
    assert "nope" in actual.texts["transforms.py"]


def test_a_comment_in_a_file_of_python_allows_what_a_plan_shows(spark: SparkSession, folder: Path) -> None:
    body = "def big(orders):\n    {}return orders.groupBy('user').count()\n"
    spec = (HEAD + PYTHON).replace("{to:", "{output_mode: update, to:")
    (folder / "transforms.py").write_text(body.format(""))
    bare = checked(spec, folder, spark)
    (finding,) = [item for item in bare.findings if item.span and item.span.file == "transforms.py"]
    comment = f"# millstream: allow {finding.code} — a handful of users\n    "
    (folder / "transforms.py").write_text(body.format(comment))

    actual = checked(spec, folder, spark)

    assert finding.code not in codes(actual)
    assert "MS091" not in codes(actual)


def test_several_targets_are_checked_in_sessions_of_their_own(spark: SparkSession, folder: Path) -> None:
    for name in ("one", "two"):
        (folder / name).mkdir()
        rest = COUNT.replace("append", "update").replace("  n:", "  apart:")
        (folder / name / "pipeline.yml").write_text(HEAD + rest)
    spec = (folder / "two" / "pipeline.yml").read_text()
    (folder / "two" / "pipeline.yml").write_text(
        spec.replace("schema:", "watermark: {event_time: ts, delay_threshold: 1 minute}\n    schema:")
    )
    checker = Checker(load=lambda path: load_spec(path, {}), _spark=spark)

    reports = checker.all(find_targets([folder]))

    assert [(report.target.name, report.exit_code) for report in reports] == [
        ("one/pipeline.yml", 1),
        ("two/pipeline.yml", 0),
    ]
    assert not spark.catalog.tableExists("apart")


def test_a_spec_cannot_change_the_settings_of_another(spark: SparkSession, folder: Path) -> None:
    before = spark.conf.get("spark.sql.shuffle.partitions")
    (folder / "pipeline.yml").write_text(
        HEAD + "spark: {spark.sql.shuffle.partitions: 7}\nqueries:\n  orders: {to: {console: {}}}\n"
    )
    checker = Checker(load=lambda path: load_spec(path, {}), _spark=spark)

    checker.all(find_targets([folder]))

    assert spark.conf.get("spark.sql.shuffle.partitions") == before


def test_a_script_is_checked_beside_a_spec(spark: SparkSession, folder: Path) -> None:
    (folder / "pipeline.yml").write_text(HEAD + "queries:\n  orders: {to: {console: {}}}\n")
    (folder / "job.py").write_text(
        "from pyspark.sql import SparkSession\n"
        "spark = SparkSession.builder.getOrCreate()\n"
        "rows = spark.readStream.format('rate').load()\n"
        "rows.orderBy('value').writeStream.format('console')"
        ".option('checkpointLocation', 'c').start().awaitTermination()\n"
    )
    checker = Checker(load=lambda path: load_spec(path, {}), _spark=spark)

    spec, script = checker.all(find_targets([folder / "pipeline.yml", folder / "job.py"]))

    assert (spec.target.kind, script.target.kind) == (TargetKind.SPEC, TargetKind.SCRIPT)
    assert [finding.code for finding in script.checked.findings if finding.severity == "error"] == ["MS311"]


EXPECTING = """name: shop
sources:
  orders:
    kafka: {bootstrap_servers: "localhost:1", subscribe: orders, max_offsets_per_trigger: 9}
    schema: {user: string, amount: double, ts: timestamp}
    watermark: {event_time: ts, delay_threshold: 1 minute}
    expect: {known: user IS NOT NULL, not_future: {that: "ts <= NOW() + INTERVAL 5 MINUTES", otherwise: OUTCOME}}
views:
  n: SELECT window(ts, '1 minute').start AS m, count(*) AS n FROM orders GROUP BY window(ts, '1 minute')
queries:
  n: {output_mode: append, to: {delta: lake/n, guarantee: exactly-once}}
"""


@pytest.mark.parametrize(
    ("clock", "outcome", "expected"),
    [
        ("now()", "drop", ["MS320", "MS304"]),
        ("now()", "dead_letter", ["MS320", "MS304"]),
        ("now()", "warn", []),
        ("current_timestamp()", "drop", []),
    ],
)
def test_an_expectation_that_drops_other_rows_in_a_replay_breaks_the_guarantee(
    clock: str, outcome: str, expected: list[str], spark: SparkSession, folder: Path
) -> None:
    text = EXPECTING.replace("NOW()", clock).replace("OUTCOME", outcome)

    actual = checked(text, folder, spark)

    assert codes(actual) == expected
    for finding in actual.findings[:1]:
        assert finding.span is not None
        assert text.splitlines()[finding.span.line - 1][finding.span.column - 1 :].startswith('"ts <= now()')
