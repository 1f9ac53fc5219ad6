"""Each kind of operator, the same from SQL and from the DataFrame API."""

from __future__ import annotations

from dataclasses import fields
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F
from pyspark.sql.streaming import StatefulProcessor

from millstream.analysis.query.plan_model import (
    Aggregate,
    BatchFunction,
    Deduplicate,
    Growth,
    Join,
    Limit,
    Operator,
    Read,
    StatefulFunction,
    TimeWindow,
    WatermarkOperator,
    WindowKind,
)
from millstream.checking.query_plan.dataframe_calls import note_calls

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame, SparkSession

Frames = dict[str, "DataFrame"]
# How the two ways of writing it differ and mean the same: Spark's own words and names for what nobody named.
LOOKS = {"number", "node", "text", "inputs", "expressions", "span", "condition", "columns", "subqueries"}


def find_operator(root: Operator, kind: type[Any]) -> Any:
    """The only operator of a class."""
    (actual,) = (operator for operator in root.walk() if isinstance(operator, kind))
    return actual


def facts(operator: Operator) -> dict[str, object]:
    """What an operator says, without the looks of it."""
    return {
        field.name: getattr(operator, field.name) for field in fields(operator) if field.name not in LOOKS
    }


SAME: dict[str, tuple[type[Operator], str, Callable[[Frames], DataFrame]]] = {
    "tumbling window": (
        Aggregate,
        "SELECT window(ts, '10 minutes') AS window, count(1) AS n FROM clicks GROUP BY 1",
        lambda f: f["clicks"].groupBy(F.window("ts", "10 minutes")).agg(F.count(F.lit(1)).alias("n")),
    ),
    "sliding window": (
        Aggregate,
        "SELECT window(ts, '10 minutes', '5 minutes') AS window, max(n) AS n FROM clicks GROUP BY 1",
        lambda f: f["clicks"].groupBy(F.window("ts", "10 minutes", "5 minutes")).agg(F.max("n").alias("n")),
    ),
    "session window": (
        Aggregate,
        "SELECT session_window(ts, '10 minutes') AS w, id, max(n) AS n FROM clicks GROUP BY 1, 2",
        lambda f: f["clicks"].groupBy(F.session_window("ts", "10 minutes"), "id").agg(F.max("n").alias("n")),
    ),
    "plain keys": (
        Aggregate,
        "SELECT id, sum(n) AS n FROM clicks GROUP BY id",
        lambda f: f["clicks"].groupBy("id").agg(F.sum("n").alias("n")),
    ),
    "distinct": (
        Deduplicate,
        "SELECT DISTINCT * FROM clicks",
        lambda f: f["clicks"].distinct(),
    ),
    "left join with a bound": (
        Join,
        "SELECT * FROM clicks c LEFT JOIN orders o ON c.id = o.id "
        "AND o.ts BETWEEN c.ts AND c.ts + INTERVAL 1 HOUR",
        lambda f: (
            f["clicks"]
            .alias("c")
            .join(
                f["orders"].alias("o"),
                (F.col("c.id") == F.col("o.id"))
                & F.col("o.ts").between(F.col("c.ts"), F.col("c.ts") + F.expr("INTERVAL 1 HOUR")),
                "left",
            )
        ),
    ),
    "join with a table": (
        Join,
        "SELECT * FROM clicks JOIN users ON clicks.id = users.id",
        lambda f: f["clicks"].join(f["users"], f["clicks"]["id"] == f["users"]["id"]),
    ),
    "limit": (Limit, "SELECT * FROM clicks LIMIT 3", lambda f: f["clicks"].limit(3)),
}


@pytest.mark.parametrize("case", SAME)
def test_the_dataframe_api_gives_the_facts_that_sql_gives(
    case: str, plan: Callable[..., Operator], frames: Frames
) -> None:
    kind, sql, build = SAME[case]

    messages, built = facts(find_operator(plan(sql), kind)), facts(find_operator(plan(build(frames)), kind))

    for name in ("functions", "bound"):
        # Texts carry the aliases of the tables.
        messages.pop(name, None), built.pop(name, None)
    assert messages == built


WINDOWS = {
    "window(ts, '10 minutes')": TimeWindow(
        WindowKind.TUMBLING, "ts", timedelta(minutes=10), timedelta(minutes=10)
    ),
    "window(ts, '1 hour', '20 minutes')": TimeWindow(
        WindowKind.SLIDING, "ts", timedelta(hours=1), timedelta(minutes=20)
    ),
    "window(ts, '1 hour', '20 minutes', '3 minutes')": TimeWindow(
        WindowKind.SLIDING, "ts", timedelta(hours=1), timedelta(minutes=20), timedelta(minutes=3)
    ),
    "window(ts, '1 day', '1 day', '15 hours')": TimeWindow(
        WindowKind.TUMBLING, "ts", timedelta(days=1), timedelta(days=1), timedelta(hours=15)
    ),
    "session_window(ts, '90 seconds')": TimeWindow(WindowKind.SESSION, "ts", timedelta(seconds=90)),
    "session_window(ts, CASE WHEN n > 1 THEN '5 seconds' ELSE '1 minute' END)": TimeWindow(
        WindowKind.SESSION, "ts", None
    ),
}


@pytest.mark.parametrize("written", WINDOWS)
def test_a_window_is_told_as_its_user_wrote_it(written: str, plan: Callable[..., Operator]) -> None:
    root = plan(f"SELECT {written} AS w, id, count(*) FROM clicks GROUP BY 1, 2")

    actual = find_operator(root, Aggregate)

    assert (actual.window, actual.event_time_key.name) == (WINDOWS[written], actual.keys[0].name)


def test_a_window_over_a_window_is_cut_from_its_time(plan: Callable[..., Operator]) -> None:
    root = plan(
        "SELECT window(window_time(w), '1 hour') AS h, sum(c) FROM "
        "(SELECT window(ts, '10 minutes') AS w, count(*) AS c FROM clicks GROUP BY 1) GROUP BY 1"
    )

    hour, ten = (aggregate for aggregate in root.walk() if isinstance(aggregate, Aggregate))

    assert [hour.window.length, ten.window.length] == [timedelta(hours=1), timedelta(minutes=10)]
    assert hour.event_time_key is not None


def test_a_window_cut_in_a_step_before_is_still_the_aggregations_window(
    plan: Callable[..., Operator],
) -> None:
    actual = find_operator(
        plan(
            "SELECT w, count(*) FROM (SELECT window(ts, '10 minutes') AS w, id FROM clicks) "
            "WHERE id <> '' GROUP BY w"
        ),
        Aggregate,
    )

    assert actual.window == WINDOWS["window(ts, '10 minutes')"]


def test_aggregate_functions_are_told_without_their_wrapping(plan: Callable[..., Operator]) -> None:
    actual = find_operator(
        plan("SELECT id, count(DISTINCT n) AS d, sum(v) / 2 AS half FROM clicks GROUP BY id"), Aggregate
    )

    assert [(function.function, function.text) for function in actual.functions] == [
        ("count", "count(n)"),
        ("sum", "sum(v)"),
    ]
    assert actual.functions[0].settings["isDistinct"] == "true"


def test_a_key_that_is_an_expression_is_named_as_its_column(plan: Callable[..., Operator]) -> None:
    actual = find_operator(
        plan("SELECT upper(id) AS loud, count(*) FROM clicks GROUP BY upper(id)"), Aggregate
    )

    (key,) = actual.keys
    assert (key.name, key.origins) == ("loud", {("clicks", "id")})


def test_a_leaf_tells_source_reader_and_columns(plan: Callable[..., Operator]) -> None:
    stream, table = (
        operator
        for operator in plan("SELECT * FROM plain JOIN users USING (id)").walk()
        if not operator.inputs
    )

    assert isinstance(stream, Read)
    assert isinstance(table, Read)
    assert (stream.source, stream.format, stream.is_streaming) == ("plain", "json", True)
    assert (table.source, table.is_streaming) == ("users", False)
    assert [(column.name, column.type) for column in stream.columns] == [
        ("id", "string"),
        ("ts", "timestamp"),
        ("v", "double"),
        ("n", "int"),
    ]


def test_a_watermark_marks_its_column_from_there_on(plan: Callable[..., Operator]) -> None:
    root = plan("SELECT id, ts AS at FROM clicks")

    marked = find_operator(root, WatermarkOperator)

    assert (marked.event_time, marked.delay) == ("ts", timedelta(minutes=5))
    assert marked.inputs[0].column("ts").delay is None
    assert root.column("at").delay == timedelta(minutes=5)


def test_functions_with_state_tell_keys_mode_and_timeout(
    frames: Frames, plan: Callable[..., Operator]
) -> None:
    def counted(key: Any, groups: Any, state: Any) -> Iterator[Any]:  # noqa: ARG001 - Spark's shape
        yield from groups

    frame = (
        frames["clicks"]
        .groupBy("id")
        .applyInPandasWithState(counted, "id string", "n int", "append", "EventTimeTimeout")
    )

    actual = find_operator(plan(frame), StatefulFunction)

    assert [key.name for key in actual.keys] == ["id"]
    assert (actual.function, actual.mode, actual.timeout, actual.growth) == (
        "counted",
        "append",
        "event_time",
        Growth.OWN,
    )


class Keep(StatefulProcessor):
    """A processor that gives nothing."""

    def init(self, handle: Any) -> None:
        """Keep nothing."""

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:  # noqa: ARG002, N802, N803
        """Give nothing."""
        yield from ()

    def close(self) -> None:
        """Let go of nothing."""


def test_transform_with_state_tells_keys_and_time_mode(frames: Frames, plan: Callable[..., Operator]) -> None:
    frame = frames["clicks"].groupBy("id").transformWithState(Keep(), "id string", "append", "processingTime")

    actual = find_operator(plan(frame), StatefulFunction)

    assert ([key.name for key in actual.keys], actual.mode, actual.timeout) == (
        ["id"],
        "append",
        "processing_time",
    )


def test_a_processor_is_told_by_its_class_where_its_call_was_noted(
    spark: SparkSession, frames: Frames, plan: Callable[..., Operator]
) -> None:
    with note_calls(spark):
        frame = frames["clicks"].groupBy("id").transformWithState(Keep(), "id string", "append", "none")

    assert find_operator(plan(frame), StatefulFunction).function == "Keep"


def same(rows: Any) -> Any:
    """What it is given."""
    return rows


def pair(one: Any, other: Any) -> Any:  # noqa: ARG001 - Spark's shape
    """The first of what it is given."""
    return one


BATCHWISE: dict[str, Callable[[Frames], DataFrame]] = {
    "FlatMapGroupsInPandas": lambda f: f["clicks"].groupBy("id").applyInPandas(same, "id string"),
    "MapInPandas": lambda f: f["clicks"].mapInPandas(same, "id string"),
    "MapInArrow": lambda f: f["clicks"].mapInArrow(same, "id string"),
    "FlatMapCoGroupsInPandas": lambda f: (
        f["clicks"].groupBy("id").cogroup(f["orders"].groupBy("id")).applyInPandas(pair, "id string")
    ),
}


@pytest.mark.parametrize("node", BATCHWISE)
def test_functions_of_one_batch_are_told_by_name(
    node: str, frames: Frames, plan: Callable[..., Operator]
) -> None:
    actual = find_operator(plan(BATCHWISE[node](frames)), BatchFunction)

    assert (actual.node, actual.function) == (node, "pair" if "Co" in node else "same")
    assert [key.name for key in actual.keys] == (["id"] if "Groups" in node else [])


@pytest.mark.parametrize(
    "condition",
    [
        "id IN (SELECT id FROM users)",
        "id NOT IN (SELECT id FROM users)",
        "EXISTS (SELECT 1 FROM users WHERE users.id = clicks.id)",
        "n > (SELECT count(*) FROM users)",
    ],
)
def test_a_subquery_is_beside_the_operator_that_asks_it(
    condition: str, plan: Callable[..., Operator]
) -> None:
    root = plan(f"SELECT id FROM clicks WHERE {condition}")

    (operators,) = (operator.subqueries for operator in root.walk() if operator.subqueries)
    assert [leaf.source for leaf in operators[0].walk() if isinstance(leaf, Read)] == ["users"]
    assert [leaf.source for leaf in root.walk() if isinstance(leaf, Read)] == ["clicks"]


def test_operators_are_numbered_from_the_top(plan: Callable[..., Operator]) -> None:
    root = plan("SELECT id FROM clicks UNION ALL SELECT id FROM orders")

    assert [operator.number for operator in root.walk()] == list(range(len(list(root.walk()))))
    assert root.node == "Union"
