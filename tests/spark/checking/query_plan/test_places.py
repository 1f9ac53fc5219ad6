"""Where the parts of a plan stand: SQL in a spec, calls in the user's Python, sources by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millstream.analysis.query.plan_model import (
    Aggregate,
    Deduplicate,
    Join,
    Operator,
    PlannedQuery,
    Read,
    WatermarkOperator,
)
from millstream.checking.query_plan import SourceCall, operators
from millstream.checking.query_plan.dataframe_calls import note_calls
from millstream.checking.query_plan.source_spans import SourcePlaces, parse
from millstream.checking.spark_analysis import analyse_pipeline
from millstream.diagnostics.finding import Span
from millstream.pipeline.spec_file import load_text

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

SPEC = """name: shop
spark: {spark.sql.session.timeZone: UTC}
sources:
  orders:
    kafka: {bootstrap_servers: "localhost:1", subscribe: orders, options: {kafka.ssl.key.password: hunter2}}
    schema: {user: string, amount: double, ts: timestamp}
    watermark: {event_time: ts, delay_threshold: 1 minute}
    drop_duplicates_within_watermark: [user]
    on_malformed: drop
  cities:
    csv: {path: cities}
    schema: {user: string, city: string}
    static: true
views:
  kept: |
    SELECT user, ts, amount,
           rand() AS dice
    FROM orders
    WHERE uuid() < 'b'
  by_city: {python: "transforms:by_city"}
  by_sql: {python: "transforms:by_sql"}
queries:
  by_sql: {output_mode: append, to: {console: {}}}
  kept: {output_mode: append, to: [{parquet: {path: out, partition_by: [user]}}, {console: {}}]}
  by_city:
    output_mode: update
    to:
      kafka: {bootstrap_servers: "localhost:1", topic_column: city, key: [city]}
"""

TRANSFORMS = """from pyspark.sql import functions as F


def fresh(frame):
    return frame.filter(F.col("ts") > F.current_timestamp() - F.expr("INTERVAL 1 DAY"))


def by_city(kept, cities):
    recent = fresh(kept)
    joined = (
        recent
        .join(cities, "user", "left")
        .withColumn("cents", (F.col("amount") * 100).cast("int"))
    )
    return joined.groupBy("city").agg(
        F.sum("cents").alias("cents")
    )


def by_sql(kept):
    loud = kept.sparkSession.sql("SELECT upper(user) AS loud FROM kept WHERE amount > 1")
    return loud.filter("loud <> 'X'")
"""


@pytest.fixture(scope="module")
def queries(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, PlannedQuery]:
    folder = tmp_path_factory.mktemp("project")
    (folder / "transforms.py").write_text(TRANSFORMS)
    (folder / "cities").mkdir()
    examined = analyse_pipeline(spark, load_text("pipeline.yml", SPEC, folder, {}))
    assert examined.findings == []
    return {query.name: query for query in examined.queries}


def describe_span(span: Span | None) -> str:
    """The text that a span marks."""
    assert span is not None
    text = SPEC if span.file == "pipeline.yml" else TRANSFORMS
    return text.splitlines()[span.line - 1][span.column - 1 : span.end_column - 1]


def find_operator(query: PlannedQuery, kind: type[Operator]) -> Operator:
    """The first operator of a class."""
    return next(operator for operator in query.walk() if isinstance(operator, kind))


def test_an_expression_of_sql_stands_where_it_is_written(queries: dict[str, PlannedQuery]) -> None:
    root = queries["kept"].root

    dice = root.column("dice")

    assert dice is not None
    assert [describe_span(cause.span) for cause in dice.volatile] == ["rand()", "uuid()"]


def test_an_operator_of_sql_stands_at_the_part_that_makes_it(queries: dict[str, PlannedQuery]) -> None:
    condition = next(operator for operator in queries["kept"].walk() if operator.node == "Filter")

    assert (describe_span(condition.span), condition.view) == ("uuid() < 'b'", "kept")


def test_a_source_is_its_reading_watermark_and_deduplication(queries: dict[str, PlannedQuery]) -> None:
    below = [operator for operator in queries["kept"].walk() if operator.view is None]

    assert [(type(operator), describe_span(operator.span)) for operator in below] == [
        (Deduplicate, "[user]"),
        (WatermarkOperator, "{event_time: ts, delay_threshold: 1 minute}"),
        (Read, "orders"),
    ]
    assert [column.name for column in below[2].columns] == ["user", "amount", "ts"]


def test_a_column_of_a_source_is_its_origin_whatever_decodes_it(queries: dict[str, PlannedQuery]) -> None:
    amount = queries["kept"].root.column("amount")

    assert amount is not None
    assert (amount.origins, amount.is_copied) == ({("orders", "amount")}, True)


def test_an_operator_of_a_function_stands_at_its_call(queries: dict[str, PlannedQuery]) -> None:
    query = queries["by_city"]

    assert describe_span(find_operator(query, Join).span) == '.join(cities, "user", "left")'
    assert describe_span(find_operator(query, Aggregate).span).startswith("return joined.groupBy")
    assert describe_span(next(node for node in query.walk() if node.node == "Filter").span).startswith(
        "return frame.f"
    )


def test_an_expression_of_a_function_stands_at_its_line(queries: dict[str, PlannedQuery]) -> None:
    casts = [
        expression
        for operator in queries["by_city"].walk()
        for tree in operator.expressions
        for expression in tree.walk()
        if expression.function == "cast" and expression.type == "int"
    ]

    assert [(cast.settings["evalMode"], describe_span(cast.span)) for cast in casts] == [
        ("ANSI", '.withColumn("cents", (F.col("amount") * 100).cast("int"))')
    ]


def test_sql_in_a_function_stands_at_the_call_that_gives_it(queries: dict[str, PlannedQuery]) -> None:
    span, value = (
        operator.span
        for operator in queries["by_sql"].walk()
        if operator.node == "Filter" and operator.view == "by_sql"
    )

    assert describe_span(span) == "return loud.filter(\"loud <> 'X'\")"
    assert describe_span(value).startswith("loud = kept.sparkSession.sql(")


def test_operators_tell_the_view_they_belong_to(queries: dict[str, PlannedQuery]) -> None:
    views = [operator.view for operator in queries["by_city"].walk() if operator.node in ("Filter", "Join")]

    assert views == ["by_city", "by_city", "kept"]


def test_a_query_tells_sinks_mode_and_settings(queries: dict[str, PlannedQuery]) -> None:
    query, by_city = queries["kept"], queries["by_city"]

    assert [(sink.kind, sink.key, sink.routed_by) for sink in query.sinks] == [
        ("parquet", (), ("user",)),
        ("console", (), ()),
    ]
    assert [(sink.key, sink.routed_by) for sink in by_city.sinks] == [(("city",), ("city", "city"))]
    assert (
        describe_span(query.span),
        describe_span(query.mode_span),
        describe_span(by_city.sinks[0].span),
    ) == (
        "kept",
        "append",
        "kafka",
    )
    assert query.spark == {"spark.sql.session.timeZone": "UTC"}


def test_no_secret_of_the_spec_is_in_a_query(queries: dict[str, PlannedQuery]) -> None:
    assert "hunter2" not in repr(queries)


def test_names_with_capitals_are_followed_too(spark: SparkSession, tmp_path: Path) -> None:
    text = """name: capitals
sources:
  Orders: {kafka: {bootstrap_servers: "localhost:1", subscribe: orders}, schema: {id: string}}
views:
  Kept: SELECT id FROM Orders
queries:
  Kept: {to: {console: {}}}
"""

    (query,) = analyse_pipeline(spark, load_text("pipeline.yml", text, tmp_path, {})).queries

    assert [(operator.view, type(operator)) for operator in query.walk()] == [
        ("Kept", Operator),
        (None, Read),
    ]
    assert query.root.columns[0].origins == {("Orders", "id")}


class _Lines(SourcePlaces):
    """Tells calls by their file's name and line, as a file of a span."""

    def call(self, call: SourceCall) -> Span | None:
        return Span.point(call.method, call.line)


def test_calls_are_noted_while_the_context_is_open(spark: SparkSession, frames: dict[str, DataFrame]) -> None:
    with note_calls(spark) as note:
        inside = frames["clicks"].dropDuplicates(["id"])
    outside = frames["clicks"].dropDuplicates(["id"])

    span = operators(inside, _Lines()).span
    assert span is not None
    assert [(call.method, call.line) for call in note.calls] == [(span.file, span.line)]
    assert operators(outside, _Lines()).span is None


def test_origins_are_read_as_scala_prints_them() -> None:
    sql = (
        "Origin(Some(1),Some(7),Some(7),Some(9),Some(SELECT f(x), 'Some(1)' FROM t),None,None,None,None,None)"
    )
    call = "Origin(None,None,None,None,None,None,None,None,Some((join,/a b/c.py:12)),None)"

    stretch = parse(sql)

    assert stretch is not None
    assert not isinstance(stretch, SourceCall)
    assert (stretch.start, stretch.stop) == (7, 10)
    assert stretch.of("SELECT f(x), 'Some(1)' FROM t")
    assert parse(call) == SourceCall("join", "/a b/c.py", 12)
    assert parse("Origin(None,None,None,None,None,None,None,None,None,None)") is None
