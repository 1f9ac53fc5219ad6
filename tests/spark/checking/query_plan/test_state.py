"""What bounds the state of each stateful operator; the table was checked against running queries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millstream.analysis.query.plan_model import Growth, Operator, StatefulOperator
from millstream.checking.query_plan import operators
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

MARK, KEYS, ROWS = Growth.WATERMARK, Growth.KEYS, Growth.ROWS
JOIN = "SELECT clicks.id FROM clicks JOIN orders ON clicks.id = orders.id AND "

TABLE = {
    # Aggregations: only a key that is itself marked counts.
    "SELECT window(ts, '1 minute') AS w, count(*) FROM clicks GROUP BY 1": MARK,
    "SELECT window(ts, '1 minute') AS w, count(*) FROM plain GROUP BY 1": KEYS,
    "SELECT session_window(ts, '1 minute') AS w, id, count(*) FROM clicks GROUP BY 1, 2": MARK,
    "SELECT ts AS t, count(*) FROM clicks GROUP BY ts": MARK,
    "SELECT window(ts, '1 minute').end AS e, count(*) FROM clicks GROUP BY 1": KEYS,
    "SELECT ts + INTERVAL 1 MINUTE AS t, count(*) FROM clicks GROUP BY 1": KEYS,
    "SELECT date_trunc('HOUR', ts) AS h, count(*) FROM clicks GROUP BY 1": KEYS,
    "SELECT id, count(*) FROM clicks GROUP BY id": KEYS,
    "SELECT count(*) FROM clicks": KEYS,
    # Deduplication.
    "SELECT DISTINCT id FROM clicks": ROWS,
    "SELECT DISTINCT id, ts FROM clicks": MARK,
    "SELECT DISTINCT id, ts FROM plain": ROWS,
    # Joins: both sides need a watermark, and the condition an end for each of them.
    "SELECT clicks.id FROM clicks JOIN orders ON clicks.id = orders.id": ROWS,
    "SELECT clicks.id FROM clicks JOIN orders ON clicks.id = orders.id AND clicks.ts = orders.ts": MARK,
    "SELECT clicks.id FROM clicks JOIN plain ON clicks.ts = plain.ts": MARK,
    JOIN + "orders.ts BETWEEN clicks.ts AND clicks.ts + INTERVAL 1 MINUTE": MARK,
    JOIN + "orders.ts >= clicks.ts": ROWS,
    JOIN + "orders.ts <= clicks.ts + INTERVAL 1 MINUTE": ROWS,
    JOIN + "clicks.ts >= orders.ts - INTERVAL 1 MINUTE AND clicks.ts < orders.ts": MARK,
    JOIN + "orders.ts > clicks.ts - make_interval(0, 0, 0, 0, 1, 0, 0) AND orders.ts < clicks.ts": MARK,
    JOIN + "CAST(orders.ts AS LONG) BETWEEN CAST(clicks.ts AS LONG) AND CAST(clicks.ts AS LONG) + 60": MARK,
    # Spark's helper does not take these apart, although they say as much.
    JOIN + "orders.ts - clicks.ts BETWEEN INTERVAL 0 MINUTE AND INTERVAL 1 MINUTE": ROWS,
    JOIN + "unix_timestamp(orders.ts) - unix_timestamp(clicks.ts) BETWEEN 0 AND 60": ROWS,
    JOIN + "orders.ts BETWEEN clicks.ts AND timestampadd(MINUTE, 1, clicks.ts)": ROWS,
    "SELECT c.id FROM clicks c JOIN plain p ON c.id = p.id "
    "AND p.ts BETWEEN c.ts AND c.ts + INTERVAL 1 MINUTE": ROWS,
    "SELECT a.id FROM (SELECT window(ts, '1 minute') AS w, id FROM clicks) a "
    "JOIN (SELECT window(ts, '1 minute') AS w, id FROM orders) b ON a.w = b.w": MARK,
}


@pytest.mark.parametrize("sql", TABLE)
def test_state_is_bounded_by(sql: str, plan: Callable[..., Operator]) -> None:
    (actual,) = (operator for operator in plan(sql).walk() if isinstance(operator, StatefulOperator))

    assert actual.growth is TABLE[sql]
    assert actual.leaves.startswith("never") is not (actual.growth is MARK)


@pytest.mark.parametrize("how", ["LEFT", "RIGHT", "FULL", "LEFT SEMI"])
def test_every_join_of_streams_keeps_what_the_inner_one_keeps(
    how: str, plan: Callable[..., Operator]
) -> None:
    bounded = "o.ts BETWEEN c.ts AND c.ts + INTERVAL 1 MINUTE"

    root = plan(f"SELECT 1 FROM clicks c {how} JOIN orders o ON c.id = o.id AND {bounded}")

    assert [operator.growth for operator in root.walk() if isinstance(operator, StatefulOperator)] == [MARK]


def test_a_join_that_bounds_one_side_says_which_side_stays(plan: Callable[..., Operator]) -> None:
    root = plan(JOIN + "orders.ts >= clicks.ts")

    (actual,) = (operator for operator in root.walk() if isinstance(operator, StatefulOperator))

    assert actual.leaves.startswith("never for rows of the left side")


def test_a_join_with_a_table_keeps_nothing(plan: Callable[..., Operator]) -> None:
    root = plan("SELECT clicks.id FROM clicks LEFT JOIN users ON clicks.id = users.id")

    (actual,) = (operator for operator in root.walk() if isinstance(operator, StatefulOperator))

    assert actual.leaves == "no state: one side is not a stream"


DEDUPLICATED: dict[str, tuple[Callable[[DataFrame], DataFrame], Growth]] = {
    "by id": (lambda frame: frame.dropDuplicates(["id"]), KEYS),
    "by id and time": (lambda frame: frame.dropDuplicates(["id", "ts"]), MARK),
    "within the watermark": (lambda frame: frame.dropDuplicatesWithinWatermark(["id"]), MARK),
}


@pytest.mark.parametrize("how", DEDUPLICATED)
def test_deduplication_is_bounded_by(
    how: str, frames: dict[str, DataFrame], plan: Callable[..., Operator]
) -> None:
    drop, growth = DEDUPLICATED[how]

    (operator,) = (item for item in plan(drop(frames["clicks"])).walk() if isinstance(item, StatefulOperator))

    assert operator.growth is growth


def test_complete_mode_keeps_every_window(spark: SparkSession, frames: dict[str, DataFrame]) -> None:
    frames["clicks"].createOrReplaceTempView("clicks")
    frame = spark.sql("SELECT window(ts, '1 minute') AS w, count(*) FROM clicks GROUP BY 1")

    operator = operators(frame, mode=OutputMode.COMPLETE)

    assert isinstance(operator, StatefulOperator)
    assert (operator.growth, operator.leaves) == (KEYS, "never: complete mode keeps every group")
