"""Two records, and the verdict on the way from one to the other."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import pytest

from millstream.checkpoint.metadata import QueryMetadata
from millstream.checkpoint.recorded_plan import (
    PlanExpression,
    RecordedPlan,
    RecordedStatefulOperator,
    RecordedWatermark,
)
from millstream.plan import changes
from millstream.plan.query_plan import QueryPlan, plan_query

KEY = PlanExpression(
    "window(orders.at, 10 minutes)", "struct<start:timestamp,end:timestamp>", nullable=False, name="window"
)
SUM = PlanExpression("sum(orders.v)", "bigint")
GROUPS = RecordedStatefulOperator(
    "aggregation", keys=(KEY, PlanExpression("orders.k", "string", name="k")), values=(SUM,)
)
JOIN = RecordedStatefulOperator(
    "stream-stream join",
    keys=(PlanExpression("orders.id", "string"),),
    right_keys=(PlanExpression("pays.id", "string"),),
    values=(PlanExpression("orders.id", "string"), PlanExpression("orders.v", "bigint")),
    right_values=(PlanExpression("pays.id", "string"),),
    join_type="Inner",
    condition=("(pays.at >= orders.at)",),
)
COLUMNS = (PlanExpression("orders.k", "string", name="k"),)


def plan(*operators: RecordedStatefulOperator, **parts: Any) -> RecordedPlan:
    """A plan whose fingerprint follows from its content."""
    made = RecordedPlan("", stateful=operators, **{"columns": COLUMNS, **parts})
    return replace(made, fingerprint=str(hash(made.__repr__())))


def record(made: RecordedPlan | None, **parts: Any) -> QueryMetadata:
    """A record of a query over one source."""
    source = {"name": "orders", "kind": "json", "path": "/in", "folder": "0"}
    fields: dict[str, Any] = {
        "operators": (),
        "sources": (source,),
        "sinks": ({"key": "id/delta:out"},),
        "output_mode": "update",
        "pinned": {},
        "unpinned": {"spark.sql.session.timeZone": "UTC"},
        "versions": {"spark": "4.2.0"},
        "plan": made,
        "inputs": {"orders": {"json": {"path": "in"}}},
    }
    return QueryMetadata(query="q", query_id="id", **{**fields, **parts})


def judge(before: QueryMetadata, now: QueryMetadata) -> QueryPlan:
    """The verdict, after a trip of the former record through its file."""
    return plan_query("q", "/c", QueryMetadata.from_json(before.to_json()), now)


def with_key(text: str, type_: str = "string", *, nullable: bool = True) -> RecordedStatefulOperator:
    """The aggregation with another second key."""
    return replace(GROUPS, keys=(KEY, PlanExpression(text, type_, nullable)))


SOURCE = {"name": "pays", "kind": "json", "path": "/pays", "folder": "1"}
ORDERS = record(None).sources[0]
STATE = plan(GROUPS)
WATERMARKED = plan(GROUPS, watermarks=(RecordedWatermark("orders.at", "10 minutes"),))
ZONE = {"spark.sql.session.timeZone": "Europe/Berlin"}
PARTITIONS = "spark.sql.shuffle.partitions"

CASES: dict[str, tuple[QueryMetadata, QueryMetadata, str, list[str]]] = {
    "nothing": (record(STATE), record(STATE), "continues", []),
    "another key of the same type": (
        record(STATE),
        record(plan(with_key("upper(orders.k)"))),
        "silently_wrong",
        ["key_changed"],
    ),
    "a key of another type": (
        record(STATE),
        record(plan(with_key("orders.n", "bigint"))),
        "start_afresh",
        ["key_changed"],
    ),
    "a key that may now be null": (
        record(plan(with_key("orders.k", nullable=False))),
        record(plan(with_key("orders.k"))),
        "start_afresh",
        ["key_changed"],
    ),
    "a key that can no longer be null": (
        record(STATE),
        record(plan(with_key("orders.k", nullable=False))),
        "continues",
        [],
    ),
    "a longer window": (
        record(STATE),
        record(plan(replace(GROUPS, keys=(replace(KEY, text="window(orders.at, 1 hour)"), GROUPS.keys[1])))),
        "silently_wrong",
        ["window_changed"],
    ),
    "sum to max": (
        record(STATE),
        record(plan(replace(GROUPS, values=(PlanExpression("max(orders.v)", "bigint"),)))),
        "silently_wrong",
        ["aggregates_changed"],
    ),
    "one aggregate more": (
        record(STATE),
        record(plan(replace(GROUPS, values=(SUM, PlanExpression("count(1)", "bigint!"))))),
        "start_afresh",
        ["aggregates_changed"],
    ),
    "sum to count, whose buffer is never null": (
        record(STATE),
        record(plan(replace(GROUPS, values=(PlanExpression("count(1)", "bigint!"),)))),
        "silently_wrong",
        ["aggregates_changed"],
    ),
    "count to sum, whose buffer may be null": (
        record(plan(replace(GROUPS, values=(PlanExpression("count(1)", "bigint!"),)))),
        record(STATE),
        "start_afresh",
        ["aggregates_changed"],
    ),
    "a filter below the state": (
        record(STATE),
        record(plan(replace(GROUPS, input=("filter (orders.v > 3)",)))),
        "silently_wrong",
        ["state_input_changed"],
    ),
    "a filter above the state": (
        record(STATE),
        record(plan(GROUPS, output=("filter (sum(orders.v) > 3)",))),
        "continues_with_note",
        ["rows_changed"],
    ),
    "a filter without state": (
        record(plan()),
        record(plan(output=("filter (orders.v > 3)",))),
        "continues_with_note",
        ["rows_changed"],
    ),
    "state added": (record(plan()), record(STATE), "start_afresh", ["stateful_operators_changed"]),
    "a stricter inner join": (
        record(plan(JOIN)),
        record(plan(replace(JOIN, condition=(*JOIN.condition, "(pays.v > 1)")))),
        "continues_with_note",
        ["join_condition_changed"],
    ),
    "a wider inner join": (
        record(plan(JOIN)),
        record(plan(replace(JOIN, condition=("(pays.at >= (orders.at - 5))",)))),
        "silently_wrong",
        ["join_condition_changed"],
    ),
    "one stored column less": (
        record(plan(JOIN)),
        record(plan(replace(JOIN, values=JOIN.values[:1]))),
        "start_afresh",
        ["stored_columns_changed"],
    ),
    "inner to left": (
        record(plan(JOIN)),
        record(plan(replace(JOIN, join_type="LeftOuter"))),
        "start_afresh",
        ["join_type_changed"],
    ),
    "another delay": (
        record(WATERMARKED),
        record(plan(GROUPS, watermarks=(RecordedWatermark("orders.at", "1 hours"),))),
        "continues_with_note",
        ["watermark_delay_changed"],
    ),
    "another event time": (
        record(WATERMARKED),
        record(plan(GROUPS, watermarks=(RecordedWatermark("orders.at2", "10 minutes"),))),
        "silently_wrong",
        ["watermark_column_changed"],
    ),
    "update to complete, after state was removed": (
        record(WATERMARKED),
        record(WATERMARKED, output_mode="complete"),
        "silently_wrong",
        ["output_mode_changed"],
    ),
    "one source more": (
        record(STATE),
        record(STATE, sources=(ORDERS, SOURCE)),
        "start_afresh",
        ["source_added"],
    ),
    "sources of one kind in another order": (
        record(STATE, sources=(ORDERS, SOURCE)),
        record(STATE, sources=({**SOURCE, "folder": "0"}, {**ORDERS, "folder": "1"})),
        "silently_wrong",
        ["sources_reordered"],
    ),
    "one topic more": (
        record(STATE, sources=({"name": "orders", "kind": "kafka", "topics": "a"},)),
        record(STATE, sources=({"name": "orders", "kind": "kafka", "topics": "a,b"},)),
        "continues_with_note",
        ["source_grew"],
    ),
    "another topic": (
        record(STATE, sources=({"name": "orders", "kind": "kafka", "topics": "a"},)),
        record(STATE, sources=({"name": "orders", "kind": "kafka", "topics": "b"},)),
        "silently_wrong",
        ["source_moved"],
    ),
    "a renamed source": (
        record(STATE),
        record(
            STATE, sources=({**ORDERS, "name": "purchases"},), inputs={"purchases": {"json": {"path": "in"}}}
        ),
        "continues",
        ["source_renamed"],
    ),
    "another limit of a batch": (
        record(STATE),
        record(STATE, inputs={"orders": {"json": {"path": "in", "max_files_per_trigger": 3}}}),
        "continues",
        ["source_option_changed"],
    ),
    "another sink": (
        record(STATE),
        record(STATE, sinks=({"key": "id/delta:out"}, {"key": "id/parquet:out"})),
        "continues_with_note",
        ["sink_added"],
    ),
    "another time zone with state": (
        record(STATE),
        record(STATE, unpinned=ZONE),
        "silently_wrong",
        ["setting_changed"],
    ),
    "another time zone without state": (
        record(plan()),
        record(plan(), unpinned=ZONE),
        "continues_with_note",
        ["setting_changed"],
    ),
    "more shuffle partitions": (
        record(STATE, pinned={PARTITIONS: "2"}),
        record(STATE, pinned={PARTITIONS: "8"}),
        "repartition",
        ["shuffle_partitions_changed"],
    ),
    "other code of a function below the state": (
        record(plan(replace(GROUPS, functions=("twice(orders.v)",))), views={"v": "python python 1"}),
        record(plan(replace(GROUPS, functions=("twice(orders.v)",))), views={"v": "python python 2"}),
        "silently_wrong",
        ["state_function_changed"],
    ),
    "other code of a view that only builds a plan": (
        record(STATE, views={"v": "python python 1"}),
        record(STATE, views={"v": "python python 2"}),
        "continues",
        [],
    ),
    "other SQL, compared without Spark": (
        record(STATE, views={"v": "SELECT 1"}),
        record(None, views={"v": "SELECT 2"}),
        "cannot_tell",
        ["view_changed"],
    ),
    "a record of an older version": (
        record(None, inputs={}, operators=()),
        record(STATE),
        "continues",
        [],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_change_has_its_verdict(name: str) -> None:
    before, now, verdict, kinds = CASES[name]

    judged = judge(before, now)

    assert (judged.verdict.value, [judgement.kind for judgement in judged.judgements]) == (verdict, kinds)


@pytest.mark.parametrize(
    "name", [name for name, case in CASES.items() if case[2] in ("start_afresh", "silently_wrong")]
)
def test_a_refused_change_says_what_spark_does_and_what_to_do(name: str) -> None:
    judged = judge(*CASES[name][:2])

    worst = judged.judgements[0]
    assert worst.verdict.is_refused
    assert worst.what
    assert worst.spark
    assert worst.sinks
    assert worst.fix


def test_the_code_of_an_accepted_verdict_belongs_to_one_query_and_one_change() -> None:
    first = judge(*CASES["sum to max"][:2])
    second = judge(*CASES["a longer window"][:2])

    assert first.accept_code != second.accept_code
    assert first.accept_code != replace(first, query="other").accept_code
    assert first.accept_code == judge(*CASES["sum to max"][:2]).accept_code


def test_every_kind_of_change_belongs_to_one_judge() -> None:
    judged = [*get_args(changes.SourceChange), *get_args(changes.StateChange), *get_args(changes.QueryChange)]
    defined = [
        item for item in vars(changes).values() if isinstance(item, type) and hasattr(item, "__match_args__")
    ]

    assert sorted(kind.__name__ for kind in judged) == sorted(kind.__name__ for kind in defined)
