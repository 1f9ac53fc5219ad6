"""Rules about sinks on plans built by hand: cases that their pages do not show."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import millstream
from millstream.analysis.query.column_lineage import trace_column
from millstream.analysis.query.plan_model import (
    Aggregate,
    BatchCode,
    BatchWrite,
    Column,
    Expression,
    Operator,
    PlannedQuery,
    PlannedSink,
    Read,
    Stability,
    TimeWindow,
    VolatileExpression,
    WindowKind,
)
from millstream.analysis.rule_context import Facts
from millstream.analysis.rules import (
    ms304_weaker_guarantee,
    ms307_same_column,
    ms309_repeated_key,
    ms310_changing_key,
    ms313_sink_order,
    ms341_repeated_rows,
    ms344_batch_in_driver,
    ms601_growing_result,
    ms602_shuffle_partitions,
)
from millstream.diagnostics.finding import Severity, Span
from millstream.pipeline.spec_file import load_text
from millstream.spec.output_mode import OutputMode
from millstream.spec.trigger import Trigger

if TYPE_CHECKING:
    from millstream.diagnostics.finding import Finding

SPEC = """name: shop
sources:
  orders:
    kafka: {bootstrap_servers: "localhost:9092", subscribe: orders}
    schema: {id: string, user: string, ts: timestamp}
queries:
  orders:
    output_mode: MODE
    to:
SINKS
"""
ID, USER = Column("id", "string"), Column("user", "string")
TS = Column("ts", "timestamp", delay=timedelta(minutes=5))
WINDOW = Column("window", "struct<start:timestamp,end:timestamp>")
HERE = Span.point("job.py", 7)


def facts(*sinks: str, mode: str = "append") -> Facts:
    lines = "\n".join(f"      - {sink}" for sink in sinks)
    text = SPEC.replace("SINKS", lines).replace("MODE", mode)
    loaded = load_text("pipeline.yml", text, Path("nowhere"), {})
    assert loaded.pipeline is not None, loaded.findings
    return Facts(loaded.pipeline, loaded.places)


def facts_in_python(key: str) -> Facts:
    """The pipeline of a spec in Python with a Kafka sink in update mode, whose key is a column."""
    pipeline = millstream.declare("shop")
    columns = {"id": "string", "user": "string", "ts": "timestamp"}
    pipeline.source("orders", millstream.kafka(bootstrap_servers="h:1", subscribe="orders"), schema=columns)
    records = millstream.kafka(bootstrap_servers="h:1", topic="t", key=key)
    pipeline.query("orders", to=records, output_mode="update")
    loaded = pipeline.load("pipeline.py", {})
    assert loaded.pipeline is not None, loaded.findings
    return Facts(loaded.pipeline, loaded.places)


def column(of: Column) -> Expression:
    return Expression("column", of.name, of.type, column=of)


def orders(*columns: Column, **more: Any) -> Read:
    return Read(2, "StreamingRelation", "", columns=columns, is_streaming=True, source="orders", **more)


def query(root: Operator, mode: str = "append", **more: Any) -> PlannedQuery:
    return PlannedQuery("orders", root, OutputMode(mode), Trigger(), **more)


def counted(*keys: Column, window: TimeWindow | None = None) -> Aggregate:
    """A count by these keys, each given as it is."""
    n = Expression("alias", "count(1) AS n", "bigint", (count := Expression("count", "count(1)"),))
    grouped = tuple(column(key) for key in keys)
    return Aggregate(
        1, "Aggregate", "", (orders(*keys),), (*keys, Column("n", "bigint")), (*grouped, *grouped, n),
        is_streaming=True, keys=keys, functions=(count,), window=window,
    )  # fmt: skip


def merged(*key: str) -> dict[str, Any]:
    return {"sinks": (PlannedSink("delta t", "delta", key=key),)}


def codes(found: Any) -> list[str]:
    some: list[Finding] = list(found)
    return [f"{finding.severity} {finding.code}" for finding in some]


DELTA = "delta: {path: t, merge_on: [user]}"


def test_a_demand_that_only_the_plan_breaks_is_told_with_the_plan() -> None:
    value = facts("{delta: t, guarantee: exactly-once}")
    drawn = VolatileExpression("rand", "rand()", Stability.UNSTABLE, HERE)
    key = replace(USER, volatile=(drawn,))
    planned = query(counted(key), sinks=(PlannedSink("delta t", "delta"),))

    assert codes(ms304_weaker_guarantee.check(value)) == []
    assert codes(ms304_weaker_guarantee.judge(planned, value)) == ["error MS304"]


def test_a_demand_that_sources_and_sinks_break_is_told_once() -> None:
    value = facts("{console: {}, guarantee: exactly-once}")
    planned = query(orders(ID), sinks=(PlannedSink("console", "console"),))

    assert codes(ms304_weaker_guarantee.check(value)) == ["error MS304"]
    assert codes(ms304_weaker_guarantee.judge(planned, value)) == []


POSTGRES = "postgres: {url: 'postgresql://h/d', table: t, columns: [id]}"


@pytest.mark.parametrize(
    ("sink", "found"), [("delta: t", ["error MS307"]), ("console: {}", []), (POSTGRES, [])]
)
def test_two_columns_of_one_name_matter_where_they_are_kept(sink: str, found: list[str]) -> None:
    planned = query(orders(ID, USER, Column("User", "string")))

    assert codes(ms307_same_column.judge(planned, facts(sink))) == found


def test_a_window_outside_of_the_key_is_an_error() -> None:
    planned = query(counted(WINDOW, USER), "update", **merged("user"))

    assert codes(ms309_repeated_key.judge(planned, facts(DELTA))) == ["error MS309"]


def test_a_time_as_it_came_may_go_with_the_key() -> None:
    planned = query(counted(TS, ID), "update", **merged("id"))

    assert codes(ms309_repeated_key.judge(planned, facts(DELTA))) == []


ITEMS, ITEM = Column("items", "array<string>"), Column("item", "string")
EXPLODED = Operator(
    1, "Generate", "", (orders(ID, ITEMS),), (ID, ITEMS, ITEM),
    (Expression("explode", "explode(items)", inputs=(column(ITEMS),)),), is_streaming=True,
)  # fmt: skip


def test_a_window_outside_of_the_key_of_records_is_a_warning_in_words_of_kafka() -> None:
    value = facts("kafka: {bootstrap_servers: 'h:1', topic: t, key: user}", mode="update")
    planned = query(counted(WINDOW, USER), "update", sinks=(PlannedSink("kafka t", "kafka", key=("user",)),))

    (finding,) = ms309_repeated_key.judge(planned, value)

    assert finding.severity is Severity.WARNING
    assert finding.message == "query 'orders' groups by the window, which is not in key"
    assert "refuses" not in finding.why


def test_a_count_in_the_key_of_records_is_a_warning_in_words_of_kafka() -> None:
    value = facts("kafka: {bootstrap_servers: 'h:1', topic: t, key: n}", mode="update")
    planned = query(counted(USER), "update", sinks=(PlannedSink("kafka t", "kafka", key=("n",)),))

    (finding,) = ms310_changing_key.judge(planned, value)

    assert finding.message == "key contains 'n', which is count(1) and changes with every row of its group"
    assert "table" not in finding.why


def test_the_key_of_records_in_a_spec_in_python_is_named_as_in_yaml() -> None:
    by_window = query(
        counted(WINDOW, USER), "update", sinks=(PlannedSink("kafka t", "kafka", key=("user",)),)
    )
    by_count = query(counted(USER), "update", sinks=(PlannedSink("kafka t", "kafka", key=("n",)),))

    findings = [
        *ms309_repeated_key.judge(by_window, facts_in_python("user")),
        *ms310_changing_key.judge(by_count, facts_in_python("n")),
    ]

    assert codes(findings) == ["warning MS309", "warning MS310"]
    assert not any("merge_on" in f"{finding.message} {finding.fix}" for finding in findings)


@pytest.mark.parametrize(
    ("condition", "severity"), [(None, "error"), (ID, "error"), (ITEM, "warning")], ids=["none", "id", "item"]
)
def test_a_condition_on_the_elements_may_leave_one_of_them(condition: Column | None, severity: str) -> None:
    test = Expression("is_not_null", "", "boolean", (column(condition),)) if condition else None
    filtered = Operator(0, "Filter", "", (EXPLODED,), EXPLODED.columns, (test,)) if test else EXPLODED

    findings = ms309_repeated_key.judge(query(filtered, **merged("id")), facts(DELTA))

    assert codes(findings) == [f"{severity} MS309"]


def test_what_stands_above_an_unknown_operator_is_not_judged() -> None:
    below = counted(WINDOW, USER)
    planned = query(Operator(0, "Mystery", "", (below,), below.columns), "update", **merged("user"))

    assert codes(ms309_repeated_key.judge(planned, facts(DELTA))) == []


def test_a_column_is_followed_through_names_and_expressions() -> None:
    below = counted(WINDOW, USER)
    upper = Expression(
        "alias", "upper(user) AS who", inputs=(Expression("upper", "", inputs=(column(USER),)),)
    )
    top = Operator(0, "Project", "", (below,), (Column("who", "string"),), (upper,))

    assert trace_column(top, 0, below) == frozenset({1})


KAFKA = "kafka: {bootstrap_servers: 'h:1', topic: t}"


def test_the_order_of_sinks_is_put_right_by_a_safe_edit() -> None:
    (finding,) = ms313_sink_order.check(facts(KAFKA, "delta: t"))

    assert finding.edit is not None
    assert finding.edit.is_safe
    assert finding.edit.insert == ("      - delta: t", f"      - {KAFKA}")


@pytest.mark.parametrize("sinks", [("delta: t", KAFKA), ("console: {}", "delta: t"), (KAFKA,)])
def test_a_sink_that_repeats_rows_may_stand_last_or_alone(sinks: tuple[str, ...]) -> None:
    assert codes(ms313_sink_order.check(facts(*sinks))) == []


@pytest.mark.parametrize(
    ("used", "form", "found"),
    [(False, "jdbc", ["warning MS341"]), (True, "jdbc", []), (False, "console", [])],
)
def test_an_append_without_the_number_is_told(used: bool, form: str, found: list[str]) -> None:
    code = BatchCode("each", recognises_repeats=used, writes=(BatchWrite(form, only_adds=True, span=HERE),))
    planned = query(orders(ID), sinks=(PlannedSink("foreachBatch", "foreachBatch", function=code),))

    assert codes(ms341_repeated_rows.judge(planned, None)) == found


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ({"format": "kafka"}, ["warning MS344"]),
        ({"format": "kafka", "options": {"maxOffsetsPerTrigger": "10"}}, []),
        ({"format": "rate"}, []),
        ({"format": "somebodys"}, []),
    ],
)
def test_a_batch_is_too_large_for_the_driver_where_no_source_bounds_it(
    source: dict[str, Any], found: list[str]
) -> None:
    code = BatchCode("each", collected=(HERE,))
    planned = query(orders(ID, **source), sinks=(PlannedSink("foreachBatch", "foreachBatch", function=code),))

    assert codes(ms344_batch_in_driver.judge(planned, None)) == found


def window(**length: int) -> TimeWindow:
    return TimeWindow(WindowKind.TUMBLING, "ts", timedelta(**length), timedelta(**length))


@pytest.mark.parametrize(
    ("root", "found"),
    [
        (counted(WINDOW, window=window(minutes=5)), ["warning MS601"]),
        (counted(WINDOW, USER, window=window(days=1)), ["warning MS601"]),
        (counted(WINDOW, window=window(days=1)), []),
        (counted(USER), []),
    ],
)
def test_a_complete_result_grows_by_its_windows(root: Aggregate, found: list[str]) -> None:
    assert codes(ms601_growing_result.judge(query(root, "complete"), None)) == found


@pytest.mark.parametrize(
    ("conf", "found"),
    [
        ({"spark.master": "local[2]"}, ["warning MS602"]),
        ({"spark.master": "local[*]"}, []),
        ({"spark.master": "yarn"}, []),
        ({}, []),
        ({"spark.master": "local[2]", "spark.sql.shuffle.partitions": "32"}, []),
        ({"spark.master": "local[2]", "spark.sql.shuffle.partitions": "33"}, ["warning MS602"]),
    ],
)
def test_a_script_on_one_machine_has_the_partitions_of_a_cluster_unless_it_says(
    conf: dict[str, str], found: list[str]
) -> None:
    assert codes(ms602_shuffle_partitions.judge(query(counted(USER), spark=conf), None)) == found
