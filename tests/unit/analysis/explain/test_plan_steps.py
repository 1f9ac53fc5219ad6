"""A plan in sentences: one for each operator, and its state."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from millstream.analysis.explain.plan_steps import StateDescription, describe_step, list_steps
from millstream.analysis.query.phrasing import format_duration
from millstream.analysis.query.plan_model import (
    Aggregate,
    BatchFunction,
    Column,
    Deduplicate,
    Expression,
    Growth,
    Join,
    Limit,
    Operator,
    Stability,
    StatefulFunction,
    TimeBound,
    TimeWindow,
    VolatileExpression,
    WindowKind,
)
from millstream.diagnostics.finding import Span
from millstream.spec.output_mode import OutputMode
from unit.analysis.plans import COUNT, ID, MINUTE, TS, marked, planned, read, windowed

SUM = Expression("sum", "sum(amount)")
OVER = Expression("greater_than", "(amount > 10)")
ON = Expression("equal_to", "(id = id)")
STATIC = read("catalog", streaming=False)
NAMED = Expression("alias", "upper(id) AS big", inputs=(Expression("upper", "upper(id)"),))
CARRIED = Expression("alias", "id AS key", inputs=(Expression("column", "id", column=ID),))


def node(name: str, *expressions: Expression, inputs: tuple[Operator, ...] = (read(),)) -> Operator:
    return Operator(1, name, name, inputs, (ID,), expressions, is_streaming=True)


def joined(how: str, *sides: Operator, bound: TimeBound | None = None, growth: Growth = Growth.ROWS) -> Join:
    return Join(
        1,
        "Join",
        "",
        sides,
        (ID,),
        is_streaming=True,
        growth=growth,
        leaves="never",
        how=how,
        condition=ON,
        bound=bound,
    )


@pytest.mark.parametrize(
    ("operator", "said"),
    [
        (read(), "reads 'orders' (kafka)"),
        (STATIC, "reads 'catalog' (kafka) as a table"),
        (replace(read(), source=None), "reads a kafka source"),
        (replace(read(), source=None, format=""), "takes literal rows of the query"),
        (marked(), "accepts rows up to 5 minutes older than the newest 'ts'"),
        (windowed(), "groups rows by window of 10 minutes over 'ts' and computes count(1)"),
        (Aggregate(1, "", "", keys=(ID, TS), functions=(COUNT, SUM)),
         "groups rows by 'id' and 'ts' and computes count(1) and sum(amount)"),
        (Aggregate(1, "", "", functions=(COUNT,)), "groups all rows together and computes count(1)"),
        (Deduplicate(1, "", "", keys=(ID,)), "keeps the first row of each 'id'"),
        (Deduplicate(1, "", "", keys=(ID,), is_within_watermark=True),
         "keeps the first row of each 'id' within the watermark"),
        (joined("inner", marked(), marked()), "pairs rows of two streams where (id = id)"),
        (joined("left_outer", marked(), STATIC),
         "keeps every row of the left side of a stream and a table where (id = id)"),
        (StatefulFunction(1, "", "", keys=(ID,), function="visits", timeout="event_time"),
         "calls visits for each 'id', which has its own state, with timeouts in event time"),
        (BatchFunction(1, "", "", function="score"),
         "calls score on the rows of one batch, separately for each batch"),
        (Limit(1, "", "", is_streaming=True, rows=3),
         "passes the first 3 rows of all batches together, then nothing"),
        (node("Filter", OVER), "keeps rows where (amount > 10)"),
        (node("Project", NAMED, CARRIED), "computes 'big'"),
        (node("Union", inputs=(read(), read("clicks"))), "combines the rows of 2 inputs"),
        (node("Generate", Expression("explode", "explode(items)")), "generates rows from explode(items)"),
        (node("Sort", Expression("sort_order", "n DESC")), "orders rows by n DESC"),
        (node("RebalancePartitions"), "runs Spark's RebalancePartitions"),
    ],
)  # fmt: skip
def test_an_operator_is_a_sentence(operator: Operator, said: str) -> None:
    assert describe_step(operator, OutputMode.APPEND) == said


@pytest.mark.parametrize(
    "operator",
    [
        node("SubqueryAlias"),
        node("CollectMetrics"),
        node("Project", CARRIED),
        node("Filter", Expression("is_not_null", "isnotnull(ts)")),
        replace(node("Filter", OVER), text="Filter (_millstream_reason IS NULL)"),
    ],
)
def test_what_only_names_or_counts_is_not_told(operator: Operator) -> None:
    assert describe_step(operator, OutputMode.APPEND) == ""


def test_steps_go_from_the_source_to_the_sink_with_their_lines() -> None:
    where = Span.point("pipeline.yml", 9)

    result = list_steps(planned(replace(windowed(), span=where)))

    assert [(step.text.split()[0], step.span) for step in result] == [
        ("reads", None),
        ("accepts", None),
        ("groups", where),
    ]


def describe_state(operator: Operator, mode: str = "append") -> StateDescription:
    findings = list_steps(planned(operator, mode))[-1].state
    assert findings
    return findings


def test_a_window_leaves_when_its_length_and_the_delay_have_passed() -> None:
    result = describe_state(windowed())

    assert (
        result.leaves
        == "once the watermark passes its end, that is 15 minutes after it began at the earliest"
    )
    assert result.comes == (
        "a window is output once, in the batch after newer rows have advanced event time 15 minutes past its start"
    )
    assert result.entry == "one entry for each window of 10 minutes over 'ts', with its running result"


def test_a_session_leaves_when_its_gap_and_the_delay_have_passed() -> None:
    result = describe_state(windowed(TimeWindow(WindowKind.SESSION, "ts", 30 * MINUTE)))

    assert result.leaves.endswith(
        "30 minutes after its last row: that is 35 minutes after that row at the earliest"
    )


def test_a_window_in_update_mode_comes_out_with_each_batch() -> None:
    assert describe_state(windowed(), "update").comes == ""


def test_complete_mode_keeps_all_and_drops_no_late_row() -> None:
    result = describe_state(windowed(), "complete")

    assert result.leaves.startswith("never")
    assert result.late == ""


def test_a_late_row_of_a_window_is_dropped() -> None:
    assert describe_state(windowed()).late.startswith(
        "dropped when its window has ended before the watermark"
    )


def test_groups_without_event_time_stay_for_ever_and_take_every_row() -> None:
    plan = replace(
        windowed(), keys=(ID,), window=None, event_time_key=None, growth=Growth.KEYS, leaves="never: …"
    )

    assert (describe_state(plan, "update").leaves, describe_state(plan, "update").late) == ("never: …", "")


def test_a_key_of_deduplication_within_the_watermark_stays_for_twice_the_delay() -> None:
    plan = Deduplicate(
        1, "", "", (marked(),), (ID, TS), is_streaming=True, keys=(ID,), is_within_watermark=True
    )

    assert describe_state(plan).leaves == (
        "once the watermark passes the time of its first row plus 5 minutes, "
        "that is 10 minutes after that row at the earliest"
    )


def test_rows_of_a_bounded_join_leave_after_what_they_may_match_and_the_delay() -> None:
    bound = TimeBound("…", "ts", "ts", timedelta(), 60 * MINUTE)

    result = describe_state(
        joined("left_outer", marked(), marked("clicks"), bound=bound, growth=Growth.WATERMARK)
    )

    assert result.leaves == (
        "once the watermark has passed every row that it may match: a row of the left side 1 hour 5 minutes "
        "after its time at the earliest and a row of the right side 5 minutes after its time at the earliest"
    )
    assert "a row of the left side without a match once it leaves the state" in result.comes


def test_a_join_with_a_table_keeps_nothing() -> None:
    assert list_steps(planned(joined("inner", marked(), STATIC)))[-1].state is None


def test_event_time_that_is_the_batchs_own_time_is_told() -> None:
    now = VolatileExpression("current_timestamp", "current_timestamp()", Stability.BATCH)
    plan = replace(marked(), columns=(Column("ts", "timestamp", volatile=(now,)),))

    assert list_steps(planned(plan))[-1].notes == ("'ts' is the time of the batch, so no row is ever late",)


@pytest.mark.parametrize(
    ("time", "said"),
    [
        (timedelta(), "0 seconds"),
        (timedelta(minutes=90), "1 hour 30 minutes"),
        (timedelta(days=1, milliseconds=5), "1 day 5 milliseconds"),
    ],
)
def test_a_length_of_time_is_in_words(time: timedelta, said: str) -> None:
    assert format_duration(time) == said
