"""The description of a plan, which each start of a query compares with the last one: the clock, unions and joins."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millstream.frames.plan_description.describe import describe_plan
from millstream.plan.change_kinds.state_changes import StateInputChanged
from millstream.plan.compare_state import compare_state

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

_ZONE = "spark.sql.session.timeZone"


@pytest.fixture(params=["UTC", "Europe/Berlin"])
def zone(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[str]:
    """The time zone of the session."""
    former = spark.conf.get(_ZONE)
    spark.conf.set(_ZONE, request.param)
    spark.readStream.format("rate").load().createOrReplaceTempView("clicks")
    yield request.param
    spark.conf.set(_ZONE, str(former))


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        ("timestamp < current_timestamp()", "current_timestamp()"),
        ("timestamp < now()", "current_timestamp()"),
        ("timestamp < now() + INTERVAL 5 MINUTES", "current_timestamp() + INTERVAL '05' MINUTE"),
        ("timestamp >= date_trunc('hour', now())", "date_trunc(hour, current_timestamp(), Some({zone}))"),
        ("to_date(timestamp) > current_date() - 1", "date_sub(current_date(), 1)"),
        ("value < unix_timestamp()", "unix_timestamp(current_timestamp(), "),
        ("CAST(timestamp AS TIMESTAMP_NTZ) < localtimestamp()", "localtimestamp()"),
        ("value IN (SELECT 1 WHERE curdate() > '2026-01-01')", "filter (current_date() > 2026-01-01)"),
    ],
)
def test_the_state_has_the_clock_by_its_name(
    spark: SparkSession, zone: str, condition: str, text: str
) -> None:
    counts = spark.sql(f"SELECT value, count(*) FROM clicks WHERE {condition} GROUP BY value")

    described = describe_plan(spark, counts)

    assert text.format(zone=zone) in "\n".join(described.stateful[0].input)
    assert described.has_clock


def test_a_window_over_the_clock_is_a_key(spark: SparkSession, zone: str) -> None:
    counts = spark.sql("SELECT window(now(), '5 minutes'), count(*) FROM clicks GROUP BY 1")

    described = describe_plan(spark, counts)

    assert [key.text for key in described.stateful[0].keys] == ["window(current_timestamp(), 5 minutes)"], (
        zone
    )
    assert describe_plan(spark, counts) == described


def test_a_plan_without_the_clock_has_none(spark: SparkSession, zone: str) -> None:
    described = describe_plan(spark, spark.sql("SELECT value FROM clicks WHERE timestamp > '2026-01-01'"))

    assert not described.has_clock
    assert "2026-01-01 00:00:00" in described.output[0], zone


@pytest.fixture
def ticks(spark: SparkSession) -> None:
    """A stream of times and numbers."""
    spark.readStream.format("rate").load().createOrReplaceTempView("ticks")


@pytest.mark.usefixtures("ticks")
def test_a_filter_of_a_branch_is_another_one_in_another_branch(spark: SparkSession) -> None:
    query = """SELECT size, count(*) FROM (
        SELECT 'big' AS size FROM ticks WHERE value {} 100 UNION ALL
        SELECT 'small' AS size FROM ticks WHERE value {} 100
    ) GROUP BY size"""

    before = describe_plan(spark, spark.sql(query.format(">", "<=")))
    now = describe_plan(spark, spark.sql(query.format("<=", ">")))

    operator = before.stateful[0]
    places = zip(operator.input, operator.branches, strict=True)
    assert {branch for line, branch in places if "> 100" in line} == {"branch 1 of the union"}
    assert [type(change) for change in compare_state(before, now, "complete")] == [StateInputChanged]
    assert before.fingerprint != now.fingerprint


@pytest.mark.usefixtures("ticks")
def test_branches_with_the_same_columns_may_change_places(spark: SparkSession) -> None:
    query = """SELECT value, count(*) FROM (
        SELECT value FROM ticks WHERE {} UNION ALL SELECT value FROM ticks WHERE {}
    ) GROUP BY value"""

    before = describe_plan(spark, spark.sql(query.format("value > 100", "value < 1")))
    now = describe_plan(spark, spark.sql(query.format("value < 1", "value > 100")))

    assert any(before.stateful[0].branches)
    assert list(compare_state(before, now, "complete")) == []


@pytest.mark.usefixtures("ticks")
def test_a_filter_of_one_side_of_a_join_is_another_one_on_the_other_side(spark: SparkSession) -> None:
    query = """SELECT a.value, b.timestamp FROM
        (SELECT * FROM ticks WHERE {}) a JOIN (SELECT * FROM ticks WHERE {}) b ON a.value = b.value + 1"""
    condition = "timestamp > '2026-01-01'"

    before = describe_plan(spark, spark.sql(query.format(condition, "true")))
    now = describe_plan(spark, spark.sql(query.format("true", condition)))

    assert "the left side of the join" in before.stateful[0].branches
    assert StateInputChanged in [type(change) for change in compare_state(before, now, "append")]


@pytest.mark.usefixtures("ticks")
def test_a_plan_without_a_union_has_no_branches(spark: SparkSession) -> None:
    counts = spark.sql("SELECT value, count(*) FROM ticks WHERE value > 1 GROUP BY value")

    described = describe_plan(spark, counts)

    assert (described.stateful[0].branches, described.output_branches) == ((), ())
