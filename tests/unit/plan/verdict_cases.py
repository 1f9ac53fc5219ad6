"""Records of a query before and after a change, with the verdict and the kinds of change that follow."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from millstream.checkpoint.recorded_plan import PlanExpression, RecordedWatermark
from unit.plan.recorded_queries import (
    DISTINCT,
    GROUPS,
    JOIN,
    KEY,
    ON_KEY,
    ORDERS,
    PARTITIONS,
    SCHEMA,
    SOURCE,
    STATE,
    SUM,
    SUMS,
    SWAPPED,
    WATERMARKED,
    WITHIN,
    ZONE,
    bounded,
    plan,
    reading,
    record,
    with_key,
)

if TYPE_CHECKING:
    from millstream.checkpoint.metadata import QueryMetadata

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
    "a narrower bound of an inner join": (
        record(bounded("10")),
        record(bounded("5")),
        "continues_with_note",
        ["join_condition_changed"],
    ),
    "a wider bound of an inner join": (
        record(bounded("10")),
        record(bounded("20")),
        "silently_wrong",
        ["join_condition_changed"],
    ),
    "a narrower bound of an outer join": (
        record(bounded("10", "LeftOuter")),
        record(bounded("5", "LeftOuter")),
        "silently_wrong",
        ["join_condition_changed"],
    ),
    "another delay of a deduplication within the watermark": (
        record(plan(WITHIN, watermarks=(RecordedWatermark("orders.at", "10 minutes"),))),
        record(plan(WITHIN, watermarks=(RecordedWatermark("orders.at", "1 hours"),))),
        "silently_wrong",
        ["watermark_delay_changed"],
    ),
    "a filter on the key in update mode": (
        record(STATE),
        record(plan(replace(GROUPS, input=(ON_KEY,)))),
        "continues_with_note",
        ["key_filter_added"],
    ),
    "a filter on the key in append mode": (
        record(plan(GROUPS), output_mode="append"),
        record(plan(replace(GROUPS, input=(ON_KEY,))), output_mode="append"),
        "silently_wrong",
        ["state_input_changed"],
    ),
    "a filter on the key removed": (
        record(plan(replace(GROUPS, input=(ON_KEY,)))),
        record(STATE),
        "silently_wrong",
        ["state_input_changed"],
    ),
    "a filter on the key and one on a value": (
        record(STATE),
        record(plan(replace(GROUPS, input=(ON_KEY, "filter (orders.v > 1)")))),
        "silently_wrong",
        ["state_input_changed"],
    ),
    "a random filter on the key": (
        record(STATE),
        record(plan(replace(GROUPS, input=("filter (hash(orders.k) > rand(7))",)))),
        "silently_wrong",
        ["state_input_changed"],
    ),
    "keys of DISTINCT swapped in update mode": (
        record(plan(DISTINCT)),
        record(plan(SWAPPED)),
        "continues_with_note",
        ["distinct_rows_changed"],
    ),
    "keys of DISTINCT swapped in complete mode": (
        record(plan(DISTINCT), output_mode="complete"),
        record(plan(SWAPPED), output_mode="complete"),
        "silently_wrong",
        ["key_changed"],
    ),
    "a sum added to DISTINCT": (
        record(plan(DISTINCT)),
        record(plan(replace(DISTINCT, values=(SUM,)))),
        "start_afresh",
        ["aggregates_changed"],
    ),
    "one source read at the place of another": (
        record(plan(), sources=reading(("orders", "a", "0"), ("pays", "b", "1"))),
        record(plan(), sources=reading(("orders", "a", "0"), ("orders", "a", "0"))),
        "silently_wrong",
        ["source_removed"],
    ),
    "one source united with itself": (
        record(plan(), sources=reading(("orders", "a", "0"))),
        record(plan(), sources=reading(("orders", "a", "0"), ("orders", "a", "0"))),
        "start_afresh",
        ["source_places_changed"],
    ),
    "a renamed source united with itself": (
        record(plan(), sources=reading(("orders", "a", "0"))),
        record(plan(), sources=reading(("purchases", "a", "0"), ("purchases", "a", "0"))),
        "start_afresh",
        ["source_places_changed", "source_renamed"],
    ),
    "two sources in another order, one of them twice": (
        record(plan(), sources=reading(("orders", "a", "0"), ("pays", "b", "1"))),
        record(plan(), sources=reading(("pays", "b", "0"), ("orders", "a", "1"), ("pays", "b", "0"))),
        "start_afresh",
        ["source_places_changed"],
    ),
    "the second place of one source before another source": (
        record(plan(), sources=reading(("orders", "a", "0"), ("pays", "b", "1"), ("orders", "a", "0"))),
        record(plan(), sources=reading(("orders", "a", "0"), ("orders", "a", "0"), ("pays", "b", "1"))),
        "silently_wrong",
        ["sources_reordered"],
    ),
    "one of two sources twice instead of the other": (
        record(plan(), sources=reading(("orders", "a", "0"), ("pays", "b", "1"), ("orders", "a", "0"))),
        record(plan(), sources=reading(("orders", "a", "0"), ("pays", "b", "1"), ("pays", "b", "1"))),
        "silently_wrong",
        ["sources_reordered"],
    ),
    "a renamed source at two places": (
        record(plan(), sources=reading(("orders", "a", "0"), ("orders", "a", "0"))),
        record(plan(), sources=reading(("purchases", "a", "0"), ("purchases", "a", "0"))),
        "continues",
        ["source_renamed"],
    ),
    "a renamed source at two places, compared without Spark": (
        record(None, sources=reading(("orders", "a", "0"), ("orders", "a", "0"))),
        record(None, sources=reading(("purchases", "a", "1"))),
        "continues",
        ["source_renamed"],
    ),
    "a pattern that the topic matches": (
        record(plan(), sources=reading(("orders", "orders", "0"))),
        record(plan(), sources=reading(("orders", "orders(-.*)?", "0"))),
        "continues_with_note",
        ["source_grew"],
    ),
    "a pattern that the topic does not match": (
        record(plan(), sources=reading(("orders", "orders", "0"))),
        record(plan(), sources=reading(("orders", "orders-.*", "0"))),
        "silently_wrong",
        ["source_moved"],
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
    "semi to inner": (
        record(plan(replace(JOIN, join_type="LeftSemi"))),
        record(plan(JOIN)),
        "silently_wrong",
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
    "another key of a sink": (
        record(STATE, sinks=({"key": "id/delta:out", "row_key": "user"},)),
        record(STATE, sinks=({"key": "id/delta:out", "row_key": "user, day"},)),
        "continues_with_note",
        ["sink_key_changed"],
    ),
    "a sink that gets a key": (
        record(STATE, sinks=({"key": "id/delta:out", "row_key": ""},)),
        record(STATE, sinks=({"key": "id/delta:out", "row_key": "user"},)),
        "continues_with_note",
        ["sink_key_changed"],
    ),
    "a sink whose key an older version did not record": (
        record(STATE, sinks=({"key": "id/delta:out"},)),
        record(STATE, sinks=({"key": "id/delta:out", "row_key": "user"},)),
        "continues",
        [],
    ),
    "another time zone with state": (
        record(STATE),
        record(STATE, unpinned=ZONE),
        "silently_wrong",
        ["setting_changed"],
    ),
    "another time zone with state that has no time": (
        record(plan(SUMS), inputs=SCHEMA),
        record(plan(SUMS), inputs=SCHEMA, unpinned=ZONE),
        "continues_with_note",
        ["setting_changed"],
    ),
    "another time zone with a deduplication within the watermark": (
        record(plan(WITHIN), inputs=SCHEMA),
        record(plan(WITHIN), inputs=SCHEMA, unpinned=ZONE),
        "silently_wrong",
        ["setting_changed"],
    ),
    "another time zone with a filter on a time": (
        record(plan(replace(SUMS, input=("filter (orders.at > x)",))), inputs=SCHEMA),
        record(plan(replace(SUMS, input=("filter (orders.at > x)",))), inputs=SCHEMA, unpinned=ZONE),
        "silently_wrong",
        ["setting_changed"],
    ),
    "another time zone with a function below the state": (
        record(plan(replace(SUMS, functions=("twice(orders.v)",))), inputs=SCHEMA),
        record(plan(replace(SUMS, functions=("twice(orders.v)",))), inputs=SCHEMA, unpinned=ZONE),
        "silently_wrong",
        ["setting_changed"],
    ),
    "another time zone without state": (
        record(plan()),
        record(plan(), unpinned=ZONE),
        "continues_with_note",
        ["setting_changed"],
    ),
    "a setting that the former session left at Spark's default": (
        record(STATE),
        record(STATE, unpinned={**record(STATE).unpinned, "spark.sql.ansi.enabled": "false"}),
        "silently_wrong",
        ["setting_changed"],
    ),
    "a setting that is left at Spark's default again": (
        record(STATE, unpinned={**record(STATE).unpinned, "spark.sql.caseSensitive": "true"}),
        record(STATE),
        "silently_wrong",
        ["setting_changed"],
    ),
    "another time zone, compared without Spark": (
        record(None),
        record(None, unpinned=ZONE),
        "cannot_tell",
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
        "cannot_tell",
        ["state_function_changed"],
    ),
    "other code of a function below the state, in a view that was renamed": (
        record(plan(replace(GROUPS, functions=("twice(orders.v)",))), views={"v": "python python 1"}),
        record(plan(replace(GROUPS, functions=("twice(orders.v)",))), views={"w": "python python 2"}),
        "cannot_tell",
        ["state_function_changed"],
    ),
    "a renamed view of a function below the state": (
        record(plan(replace(GROUPS, functions=("twice(orders.v)",))), views={"v": "python python 1"}),
        record(plan(replace(GROUPS, functions=("twice(orders.v)",))), views={"w": "python python 1"}),
        "continues",
        [],
    ),
    "a view that is new next to an unchanged one": (
        record(plan(replace(GROUPS, functions=("twice(orders.v)",))), views={"v": "python python 1"}),
        record(
            plan(replace(GROUPS, functions=("twice(orders.v)",))),
            views={"v": "python python 1", "w": "python python 2"},
        ),
        "continues",
        [],
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
    "the clock, of which an older version recorded the time of the start": (
        record(plan(replace(GROUPS, input=("filter (orders.at < 2026-06-01 12:05:00.123456)",)))),
        record(
            plan(
                replace(GROUPS, input=("filter (orders.at < current_timestamp() + INTERVAL '05' MINUTE)",)),
                has_clock=True,
            )
        ),
        "continues",
        [],
    ),
    "other SQL, and the clock, of which an older version recorded the time of the start": (
        record(plan(replace(GROUPS, input=("filter (orders.at < 2026-06-01 12:05:00.123456)",)))),
        record(
            plan(replace(GROUPS, input=("filter (orders.at < current_timestamp())",)), has_clock=True),
            views={"v": "SELECT 2"},
        ),
        "silently_wrong",
        ["state_input_changed"],
    ),
    "another shift of the clock": (
        record(
            plan(
                replace(GROUPS, input=("filter (orders.at < current_timestamp() + INTERVAL '05' MINUTE)",)),
                has_clock=True,
            )
        ),
        record(
            plan(replace(GROUPS, input=("filter (orders.at < current_timestamp())",)), has_clock=True),
        ),
        "silently_wrong",
        ["state_input_changed"],
    ),
    "a record of an older version": (
        record(None, inputs={}, operators=()),
        record(STATE),
        "continues",
        [],
    ),
}
