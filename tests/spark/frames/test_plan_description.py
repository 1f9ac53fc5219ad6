"""The description of a plan that depends on the clock, which each start of a query compares with the last one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millstream.frames.plan_description.describe import describe_plan

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
