"""Conversions of a source's texts and numbers, as the plan shows them to the rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millstream.analysis.query.plan_model import PlannedQuery
from millstream.analysis.rule_runner import load_rules
from millstream.checking.query_plan import operators
from millstream.spec.output_mode import OutputMode
from millstream.spec.trigger import Trigger

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from millstream.diagnostics.finding import Finding

COLUMNS = (
    "amount string, line string, ts_ms bigint, tags map<string, string>, "
    "payload struct<amount: string, at: string, ts_ms: bigint, n: int>"
)


@pytest.fixture
def raw(spark: SparkSession, tmp_path: Path) -> DataFrame:
    """A stream of these columns, also as a view."""
    frame = spark.readStream.schema(COLUMNS).json(str(tmp_path))
    frame.createOrReplaceTempView("raw")
    return frame


def list_findings(code: str, frame: DataFrame) -> list[Finding]:
    judge = load_rules()[code].judge
    assert judge is not None
    query = PlannedQuery("q", operators(frame), OutputMode.APPEND, Trigger())
    return list(judge(query, None))


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("CAST(amount AS DOUBLE)", "casts the text 'amount' to DOUBLE"),
        ("CAST(trim(amount) AS DOUBLE)", "casts text from 'amount' to DOUBLE"),
        ("CAST(regexp_replace(amount, ',', '') AS DOUBLE)", "casts text from 'amount' to DOUBLE"),
        ("CAST(split(line, ',')[2] AS INT)", "casts text from 'line' to INT"),
        ("CAST(split_part(line, ',', 2) AS INT)", "casts text from 'line' to INT"),
        ("CAST(substring(line, 1, 4) AS INT)", "casts text from 'line' to INT"),
        ("CAST(get_json_object(line, '$.n') AS DOUBLE)", "casts text from 'line' to DOUBLE"),
        ("CAST(coalesce(amount, '0') AS INT)", "casts text from 'amount' to INT"),
        ("lower(amount) > 5", "casts text from 'amount' to BIGINT"),
        ("CAST(payload.amount AS INT)", "casts the text 'payload.amount' to INT"),
        ("to_timestamp(payload.at)", "parses the text 'payload.at' with to_timestamp"),
        ("CAST(tags['n'] AS INT)", "casts text from 'tags' to INT"),
    ],
)
def test_a_text_that_may_not_be_converted_is_reported(raw: DataFrame, expression: str, text: str) -> None:
    (finding,) = list_findings("MS550", raw.selectExpr(f"{expression} AS result"))

    assert finding.message.startswith(f"the query {text}, which fails")


@pytest.mark.parametrize(
    ("expression", "call"),
    [
        ("to_timestamp(line, 'yyyy')", "try_to_timestamp"),
        ("unix_timestamp(line)", "unix_timestamp(try_to_timestamp(line, 'yyyy-MM-dd HH:mm:ss'))"),
        ("to_unix_timestamp(line, 'yyyy')", "to_unix_timestamp(try_to_timestamp(line, 'yyyy'))"),
    ],
)
def test_the_tolerant_call_has_the_type_of_the_other(raw: DataFrame, expression: str, call: str) -> None:
    (finding,) = list_findings("MS550", raw.selectExpr(f"{expression} AS result"))

    assert finding.fix.startswith(f"use {call}, which returns NULL")
    arguments = "" if "(" in call else "(line, 'yyyy')"
    types = [raw.selectExpr(f"{text} AS result").dtypes for text in (expression, f"{call}{arguments}")]
    assert types[0] == types[1]


@pytest.mark.parametrize(
    "expression",
    [
        "CAST(length(line) AS INT)",
        "try_cast(trim(amount) AS INT)",
        # It is NULL where nothing matches.
        "CAST(regexp_substr(line, '[0-9]{1,9}') AS INT)",
        "CAST(payload.n AS BIGINT)",
        "CAST(CASE WHEN amount = 'a' THEN '1' ELSE '2' END AS INT)",
    ],
)
def test_a_value_that_is_always_converted_is_not_reported(raw: DataFrame, expression: str) -> None:
    assert list_findings("MS550", raw.selectExpr(f"{expression} AS result")) == []


def test_a_checked_field_of_a_struct_is_not_reported(raw: DataFrame) -> None:
    checked = raw.where("payload.amount RLIKE '^[0-9]{1,9}$'")

    assert list_findings("MS550", checked.selectExpr("CAST(payload.amount AS INT) AS n")) == []


@pytest.mark.parametrize(
    ("number", "kind", "is_reported"),
    [
        ("bigint", "INT", True),
        ("double", "INT", True),
        ("decimal(10,0)", "INT", True),
        ("decimal(12,3)", "INT", False),
        ("decimal(5,2)", "INT", False),
        ("decimal(5,2)", "TINYINT", True),
        ("int", "SMALLINT", True),
        ("smallint", "TINYINT", True),
        ("tinyint", "INT", False),
        ("int", "BIGINT", False),
    ],
)
def test_a_number_is_reported_if_its_type_has_larger_ones(
    number: str, kind: str, is_reported: bool, spark: SparkSession, tmp_path: Path
) -> None:
    frame = spark.readStream.schema(f"n {number}").json(str(tmp_path)).selectExpr(f"CAST(n AS {kind}) AS n")

    assert bool(list_findings("MS556", frame)) is is_reported


@pytest.mark.parametrize(
    ("expression", "count"),
    [
        ("CAST(ts_ms AS TIMESTAMP)", 1),
        ("to_timestamp(ts_ms)", 1),
        ("try_to_timestamp(ts_ms)", 1),
        ("timestamp_seconds(ts_ms)", 1),
        ("CAST(payload.ts_ms AS TIMESTAMP)", 1),
        ("timestamp_micros(payload.ts_ms)", 1),
        ("timestamp_millis(payload.ts_ms)", 0),
        ("to_timestamp(payload.at)", 0),
        ("to_timestamp(ts_ms / 1000)", 0),
    ],
)
def test_a_number_is_read_in_the_unit_of_its_name(raw: DataFrame, expression: str, count: int) -> None:
    marked = raw.selectExpr(f"{expression} AS at").withWatermark("at", "10 minutes")

    findings = list_findings("MS205", marked)

    assert len(findings) == count
    assert all("ts_ms' as " in finding.message for finding in findings)
