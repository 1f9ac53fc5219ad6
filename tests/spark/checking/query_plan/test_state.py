"""What bounds the state of each stateful operator; the table was checked against running queries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from millstream.analysis.query.plan_model import Growth, Join, Operator, StatefulOperator
from millstream.checking.query_plan import operators
from millstream.spark import internals
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
    # The end of a day is no fixed time after a row.
    JOIN + "orders.ts >= clicks.ts AND CAST(orders.ts AS DATE) <= CAST(clicks.ts AS DATE)": ROWS,
    JOIN + "orders.ts >= clicks.ts AND "
    "orders.ts < CAST(CAST(clicks.ts AS DATE) AS TIMESTAMP) + INTERVAL 1 DAY": ROWS,
    # Spark's helper does not take these apart, although they say as much.
    JOIN + "orders.ts - clicks.ts BETWEEN INTERVAL 0 MINUTE AND INTERVAL 1 MINUTE": ROWS,
    JOIN + "unix_timestamp(orders.ts) - unix_timestamp(clicks.ts) BETWEEN 0 AND 60": ROWS,
    JOIN + "orders.ts BETWEEN clicks.ts AND timestampadd(MINUTE, 1, clicks.ts)": ROWS,
    "SELECT c.id FROM clicks c JOIN plain p ON c.id = p.id "
    "AND p.ts BETWEEN c.ts AND c.ts + INTERVAL 1 MINUTE": ROWS,
    "SELECT a.id FROM (SELECT window(ts, '1 minute') AS w, id FROM clicks) a "
    "JOIN (SELECT window(ts, '1 minute') AS w, id FROM orders) b ON a.w = b.w": MARK,
}


BOUND = "o.ts BETWEEN c.ts AND c.ts + INTERVAL 1 MINUTE"
NEAR = f"c.id = o.id AND {BOUND}"
PAIRS = "SELECT c.id, o.id AS other, c.ts, o.ts AS at, c.n FROM clicks c JOIN orders o"
LATER = "at BETWEEN ts AND ts + INTERVAL 1 MINUTE"
# Joins of `clicks` and `orders` whose condition is in a WHERE: whether it has a key, and what bounds the state.
FILTERED: dict[str, tuple[bool, Growth]] = {
    f"SELECT 1 FROM clicks c, orders o WHERE {NEAR}": (True, MARK),
    f"SELECT 1 FROM clicks c CROSS JOIN orders o WHERE {NEAR}": (True, MARK),
    f"SELECT 1 FROM clicks c, orders o, users u WHERE {NEAR} AND u.id = c.id": (True, MARK),
    f"SELECT 1 FROM clicks c CROSS JOIN orders o JOIN users u ON u.id = c.id AND {NEAR}": (True, MARK),
    f"SELECT 1 FROM clicks c CROSS JOIN orders o LEFT JOIN users u ON u.id = c.id WHERE {NEAR}": (True, MARK),
    f"SELECT 1 FROM clicks c JOIN orders o USING (id) WHERE {BOUND}": (True, MARK),
    f"SELECT 1 FROM ({PAIRS} ON c.id = o.id) WHERE {LATER}": (True, MARK),
    f"WITH pairs AS ({PAIRS}) SELECT 1 FROM pairs p WHERE id = other AND {LATER}": (True, MARK),
    f"SELECT 1 FROM (SELECT *, upper(other) AS up FROM ({PAIRS})) WHERE id = up AND {LATER}": (True, MARK),
    f"SELECT 1 FROM (SELECT * FROM ({PAIRS} ON c.id = o.id) WHERE n > 0) WHERE {LATER}": (True, MARK),
    f"SELECT 1 FROM clicks c, orders o LATERAL VIEW explode(array(1, 2)) x AS y WHERE {NEAR}": (True, MARK),
    # It compares no columns of both sides with `=`, or limits the times in one direction only.
    f"SELECT 1 FROM clicks c JOIN orders o ON {BOUND} WHERE c.n > 10": (False, MARK),
    "SELECT 1 FROM clicks c JOIN orders o ON c.id = o.id WHERE c.ts > '2026-01-01' AND o.ts > '2026-01-01'": (
        True,
        ROWS,
    ),
    "SELECT 1 FROM clicks c JOIN orders o ON c.id = o.id WHERE o.ts >= c.ts": (True, ROWS),
    # Spark moves nothing below a limit, a value that differs from run to run, or to the other side of an outer join.
    f"SELECT 1 FROM ({PAIRS} ON c.id = o.id LIMIT 5) WHERE {LATER}": (True, ROWS),
    f"SELECT r FROM (SELECT *, rand() AS r FROM ({PAIRS} ON c.id = o.id)) WHERE {LATER}": (True, ROWS),
    f"SELECT 1 FROM (SELECT * FROM ({PAIRS} ON c.id = o.id) WHERE rand() > 0.5) WHERE {LATER}": (True, ROWS),
    f"SELECT 1 FROM users u LEFT JOIN (clicks c JOIN orders o ON c.id = o.id) ON u.id = c.id WHERE {BOUND} "
    "OR o.ts IS NULL": (True, ROWS),
}


def find_join(plan: Any) -> Any:
    """The join of two streams in a plan of the JVM."""
    children = [plan.children().apply(index) for index in range(plan.children().size())]
    if plan.nodeName() == "Join" and all(child.isStreaming() for child in children):
        return plan
    return next(join for child in children if child.isStreaming() for join in [find_join(child)])


@pytest.mark.parametrize("sql", FILTERED)
def test_a_join_has_the_conditions_of_filters_that_spark_adds_to_it(
    sql: str, plan: Callable[..., Operator], spark: SparkSession
) -> None:
    (join,) = (item for item in plan(sql).walk() if isinstance(item, Join) and item.is_stream_stream)
    optimized = internals.optimize_plan(spark, internals.analyzed_plan(spark.sql(sql)))

    assert (bool(join.keys), join.growth) == FILTERED[sql]
    parts = internals.equi_join_keys(spark, find_join(optimized))
    condition = "" if parts is None else str(parts._4().toString())
    assert ((parts is not None), ("<=" in condition and ">=" in condition)) == (
        bool(join.keys),
        join.growth is MARK and bool(join.keys),
    )


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
