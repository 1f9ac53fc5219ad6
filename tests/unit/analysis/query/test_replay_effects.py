"""Effects of nondeterministic expressions when a batch runs again."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from millstream.analysis.query.plan_model import Column, Expression, Join, Operator, PlannedSink, Stability
from millstream.analysis.query.replay_effects import ReplayImpact, find_volatile_flows

if TYPE_CHECKING:
    from conftest import Plans
    from millstream.analysis.query.plan_model import PlannedQuery


def fates(query: PlannedQuery) -> list[ReplayImpact]:
    return [flow.impact for flow in find_volatile_flows(query, Stability.UNSTABLE)]


def drawn(plans: Plans, name: str = "key") -> Operator:
    """The stream with a column that is drawn anew."""
    below = plans.stream()
    column = Column(name, "string", volatile=(plans.drawn("uuid"),))
    call = plans.call("uuid", stability=Stability.UNSTABLE, span=plans.here)
    return plans.project(below, (below.columns[0], plans.leaf(below.columns[0])), (column, call))


def sink(*, key: tuple[str, ...] = (), routed_by: tuple[str, ...] = ()) -> tuple[PlannedSink, ...]:
    return (PlannedSink("delta rows", "delta", key=key, routed_by=routed_by),)


def chosen(below: Operator, plans: Plans) -> Operator:
    """The rows below, by chance; every column carries what chooses them, as a plan has it."""
    call = plans.call("rand", stability=Stability.UNSTABLE, span=plans.here)
    columns = tuple(replace(column, volatile=(plans.drawn("rand"),)) for column in below.columns)
    return Operator(0, "Filter", "", (below,), columns, (call,), is_streaming=True)


def test_a_column_that_is_written_is_payload(plans: Plans) -> None:
    assert fates(plans.query(drawn(plans), sinks=sink())) == [ReplayImpact.PAYLOAD]


def test_a_key_of_a_sink_is_told_before_its_column(plans: Plans) -> None:
    assert fates(plans.query(drawn(plans), sinks=sink(key=("key",)))) == [ReplayImpact.KEY]


def test_a_partition_is_a_route(plans: Plans) -> None:
    assert fates(plans.query(drawn(plans), sinks=sink(routed_by=("KEY",)))) == [ReplayImpact.ROUTE]


def test_a_key_of_a_grouping_is_state(plans: Plans) -> None:
    below = drawn(plans)

    assert fates(plans.query(plans.grouped(below, below.columns[1]), sinks=sink(key=("key",)))) == [
        ReplayImpact.STATE
    ]


def test_an_aggregate_of_a_drawn_value_is_state(plans: Plans) -> None:
    below = drawn(plans)
    total = plans.call("max", plans.leaf(below.columns[1]))
    grouped = replace(plans.grouped(below, below.columns[0]), functions=(total,))

    assert fates(plans.query(grouped)) == [ReplayImpact.STATE]


def test_a_value_drawn_for_the_result_of_a_grouping_is_payload(plans: Plans) -> None:
    below = plans.stream()
    column = Column("key", "string", volatile=(plans.drawn("uuid"),))
    grouped = plans.grouped(below, below.columns[0])
    root = replace(grouped, columns=(*grouped.columns, column))

    assert fates(plans.query(root)) == [ReplayImpact.PAYLOAD]


def test_a_choice_of_rows_is_no_key_though_each_column_carries_it(plans: Plans) -> None:
    assert fates(plans.query(chosen(plans.stream(), plans), sinks=sink(key=("id",)))) == [ReplayImpact.FILTER]


def test_a_choice_of_rows_of_a_joined_table_is_no_key(plans: Plans) -> None:
    stream = plans.stream()
    table = replace(chosen(plans.stream(plans.column("rate")), plans), is_streaming=False)
    columns = tuple(
        replace(column, volatile=(plans.drawn("rand"),)) for column in (*stream.columns, *table.columns)
    )
    join = Join(0, "Join", "", (stream, table), columns, is_streaming=True, how="left_outer")

    assert fates(plans.query(join, sinks=sink(key=("id",)))) == [ReplayImpact.FILTER]


def test_a_key_by_which_a_table_is_joined_is_a_key_and_another_key_is_not(plans: Plans) -> None:
    stream = drawn(plans)
    table = replace(plans.stream(plans.column("user")), is_streaming=False)
    condition = plans.call("equal_to", plans.leaf(stream.columns[1]), plans.leaf(table.columns[0]))
    columns = tuple(
        replace(column, volatile=(plans.drawn("uuid"),)) for column in (*stream.columns, *table.columns)
    )
    join = Join(0, "Join", "", (stream, table), columns, (condition,), is_streaming=True)
    root = Operator(0, "Filter", "", (join,), columns, (condition,), is_streaming=True)

    impacts = [
        fates(plans.query(top, sinks=sink(key=(key,)))) for top in (join, root) for key in ("key", "id")
    ]

    assert impacts == [[ReplayImpact.KEY], [ReplayImpact.FILTER]] * 2


def test_a_choice_of_rows_below_a_grouping_is_state(plans: Plans) -> None:
    below = chosen(plans.stream(), plans)

    assert fates(plans.query(plans.grouped(below, below.columns[0]))) == [ReplayImpact.STATE]


def test_what_is_kept_with_the_batch_is_not_told(plans: Plans) -> None:
    clock = Column("at", "timestamp", volatile=(plans.drawn("current_timestamp", Stability.BATCH),))
    root = plans.project(plans.stream(), (clock, Expression("current_timestamp", "current_timestamp()")))

    assert fates(plans.query(root)) == []
