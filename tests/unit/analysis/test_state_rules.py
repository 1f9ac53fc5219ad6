"""Rules about event time and state, for scripts and for plans that no page shows."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from millstream.analysis.query.plan_model import (
    Aggregate,
    Column,
    Expression,
    Growth,
    Join,
    Operator,
    PlannedSink,
    Stability,
    StatefulFunction,
    TimeBound,
    TimeWindow,
    WindowKind,
)
from millstream.analysis.rule_runner import load_rules
from millstream.diagnostics.finding import Severity
from millstream.spec.output_mode import OutputMode
from millstream.spec.trigger import Trigger

if TYPE_CHECKING:
    from conftest import Plans
    from millstream.analysis.query.plan_model import PlannedQuery
    from millstream.diagnostics.finding import Finding

APPEND, UPDATE, COMPLETE = OutputMode.APPEND, OutputMode.UPDATE, OutputMode.COMPLETE


def list_findings(code: str, query: PlannedQuery) -> list[Finding]:
    judge = load_rules()[code].judge
    assert judge is not None
    return list(judge(query, None))


def test_a_script_that_groups_by_time_without_a_watermark_is_told(plans: Plans) -> None:
    below = plans.stream()

    (finding,) = list_findings("MS201", plans.query(plans.grouped(below, below.columns[1])))

    assert finding.message == "query 'q' aggregates source 'orders', which has no watermark"
    assert finding.span == plans.here


@pytest.mark.parametrize(("mode", "count"), [(APPEND, 1), (UPDATE, 0), (COMPLETE, 0)])
def test_a_total_without_a_watermark_is_refused_in_append_mode_only(
    plans: Plans, mode: OutputMode, count: int
) -> None:
    below = plans.stream()

    assert len(list_findings("MS201", plans.query(plans.grouped(below, below.columns[0]), mode))) == count


def test_a_total_is_told_with_and_without_a_watermark(plans: Plans) -> None:
    bare, marked = plans.stream(), plans.marked(plans.stream())

    whys = [
        list_findings("MS202", plans.query(plans.grouped(below, below.columns[0])))[0].why
        for below in (bare, marked)
    ]

    assert whys[0] != whys[1]


@pytest.mark.parametrize(
    ("function", "codes"), [("cast", ["MS202"]), ("upper", ["MS218"])], ids=["time", "text"]
)
def test_a_time_as_text_is_no_total_also_if_each_sink_has_its_rows(
    plans: Plans, function: str, codes: list[str]
) -> None:
    below = plans.stream()
    key = replace(below.columns[1], name="at", type="string", is_copied=False)
    text = plans.call(function, plans.leaf(below.columns[1]), kind="string")
    project = plans.project(below, (key, Expression("alias", f"{text.text} AS at", "string", (text,))))
    sinks = (PlannedSink("delta times", "delta", key=("at",)),)
    query = plans.query(plans.grouped(project, key), sinks=sinks)

    assert [code for code in ("MS201", "MS202", "MS218") if list_findings(code, query)] == codes


def test_a_lost_watermark_is_not_told_as_a_total_too(plans: Plans) -> None:
    below = plans.marked(plans.stream())
    hour = replace(below.columns[1], name="hour", delay=None, is_copied=False)
    query = plans.query(plans.grouped(plans.project(below, (hour, plans.leaf(hour))), hour))

    assert [len(list_findings(code, query)) for code in ("MS202", "MS203")] == [0, 1]


def test_a_day_without_a_watermark_is_a_warning(plans: Plans) -> None:
    below = plans.marked(plans.stream())
    day = replace(below.columns[1], name="day", type="date", delay=None, is_copied=False)
    root = plans.grouped(plans.project(below, (day, plans.leaf(day))), day)

    result = [list_findings("MS203", plans.query(root, mode))[0].severity for mode in (UPDATE, APPEND)]

    assert result == [Severity.WARNING, Severity.ERROR]


@pytest.mark.parametrize(
    ("kind", "fix"),
    [
        (
            "timestamp",
            "group by 'window(ts, …)', or declare the watermark on the computed column instead of 'ts'",
        ),
        ("date", "group by 'window(ts, …)'"),
    ],
)
def test_a_watermark_may_be_declared_on_a_timestamp_only(plans: Plans, kind: str, fix: str) -> None:
    below = plans.marked(plans.stream())
    time = replace(below.columns[1], name="time", type=kind, delay=None, is_copied=False)
    root = plans.grouped(plans.project(below, (time, plans.leaf(time))), time)

    assert [finding.fix for finding in list_findings("MS203", plans.query(root))] == [fix]


def test_a_deduplication_by_a_computed_time_is_named_as_one(plans: Plans) -> None:
    below = plans.marked(plans.stream())
    hour = replace(below.columns[1], name="hour", delay=None, is_copied=False)
    root = plans.deduplicate(plans.project(below, (hour, plans.leaf(hour))), hour)

    (finding,) = list_findings("MS203", plans.query(root))

    assert finding.message == "query 'q' deduplicates by 'hour', without the watermark of 'ts'"
    assert finding.why.endswith("so no key is ever removed from the state")
    assert finding.fix == "deduplicate by 'ts' itself, or use dropDuplicatesWithinWatermark"


def test_a_watermark_above_an_aggregation_never_moves_in_append_mode(plans: Plans) -> None:
    below = plans.marked(plans.stream())
    upper = plans.marked(plans.grouped(below, below.columns[1]))

    whys = [list_findings("MS204", plans.query(upper, mode))[0].why for mode in (APPEND, UPDATE)]

    assert "no row is ever output" in whys[0]
    assert "after one batch" in whys[1]


@pytest.mark.parametrize(
    ("name", "function", "told"),
    [
        ("ts_ms", "cast", True),
        ("createdMs", "cast", True),
        ("ts_ms", "to_timestamp", True),
        ("ts_ms", "try_to_timestamp", True),
        ("at_millis", "timestamp_seconds", True),
        ("at_us", "timestamp_millis", True),
        ("at_seconds", "timestamp_millis", True),
        ("at_seconds", "cast", False),
        ("ts_ms", "millis_to_timestamp", False),
        ("ts", "cast", False),
        ("items", "cast", False),
        ("status", "cast", False),
    ],
)
def test_a_number_is_read_in_the_unit_of_its_name(plans: Plans, name: str, function: str, told: bool) -> None:
    number = plans.column(name, "bigint")
    result = plans.call(function, plans.leaf(number), kind="timestamp")
    time = Column("ts", "timestamp", origins=number.origins)
    marked = plans.marked(plans.project(plans.stream(number), (time, result)))

    assert bool(list_findings("MS205", plans.query(marked))) is told


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("ts_ms", "1,000 times too fast: a watermark delay of ten minutes waits only 0.6 seconds"),
        ("at_us", "1,000,000 times too fast: a watermark delay of ten minutes waits only 0.0006 seconds"),
        (
            "at_ns",
            "1,000,000,000 times too fast: a watermark delay of ten minutes waits only 0.0000006 seconds",
        ),
    ],
)
def test_a_wrong_unit_says_how_fast_time_passes(plans: Plans, name: str, told: str) -> None:
    number = plans.column(name, "bigint")
    result = plans.call("cast", plans.leaf(number), kind="timestamp")
    time = Column("ts", "timestamp", origins=number.origins)
    marked = plans.marked(plans.project(plans.stream(number), (time, result)))

    (finding,) = list_findings("MS205", plans.query(marked))

    assert told in finding.why


def test_the_clock_under_a_watermark_is_told_and_a_bound_by_it_is_not(plans: Plans) -> None:
    clock = Column("ts", "timestamp", volatile=(plans.drawn("current_timestamp", Stability.BATCH),))
    bounded = replace(clock, origins=frozenset({("orders", "ts")}))

    result = [
        len(list_findings("MS206", plans.query(plans.marked(plans.stream(column)))))
        for column in (clock, bounded)
    ]

    assert result == [1, 0]


@pytest.mark.parametrize(
    ("mode", "trigger", "count"),
    [
        (APPEND, "available_now", 1),
        (UPDATE, "available_now", 0),
        (APPEND, "1 second", 0),
        (APPEND, "once", 1),
    ],
)
def test_a_run_that_ends_keeps_its_last_windows(
    plans: Plans, mode: OutputMode, trigger: str, count: int
) -> None:
    below = plans.marked(plans.stream())
    query = plans.query(plans.grouped(below, below.columns[1]), mode, Trigger.model_validate(trigger))

    assert len(list_findings("MS207", query)) == count


def test_empty_batches_are_missed_where_a_watermark_clears_state(plans: Plans) -> None:
    below = plans.marked(plans.stream())
    spark = {"spark.sql.streaming.noDataMicroBatches.enabled": "FALSE"}
    cleared = replace(plans.grouped(below, below.columns[1]), growth=Growth.WATERMARK)

    result = [len(list_findings("MS208", plans.query(root, spark=spark))) for root in (cleared, below)]

    assert result == [1, 0]


def joined(plans: Plans, *, marks: tuple[bool, bool], **more: Any) -> PlannedQuery:
    left, right = (plans.marked(plans.stream()) if mark else plans.stream() for mark in marks)
    columns = (*left.columns, *right.columns)
    return plans.query(Join(0, "Join", "", (left, right), columns, is_streaming=True, **more), APPEND)


HOUR = timedelta(hours=1)


@pytest.mark.parametrize(
    ("earliest", "latest", "side"),
    [(timedelta(), None, "the left"), (None, HOUR, "the right"), (None, None, "both")],
)
def test_a_join_with_an_open_bound_names_the_side_that_stays(
    plans: Plans, earliest: timedelta | None, latest: timedelta | None, side: str
) -> None:
    bound = TimeBound("l.ts >= r.ts", "ts", "ts", earliest, latest)

    (finding,) = list_findings("MS209", joined(plans, marks=(True, True), growth=Growth.ROWS, bound=bound))

    assert f"every row of {side} forever" in finding.message


def test_a_join_with_one_watermark_keeps_both_sides_whatever_its_bound(plans: Plans) -> None:
    bound = TimeBound("l.ts BETWEEN r.ts AND r.ts + 1 hour", "ts", "ts", timedelta(), HOUR)

    (finding,) = list_findings("MS209", joined(plans, marks=(True, False), growth=Growth.ROWS, bound=bound))

    assert "every row of both forever" in finding.message
    assert finding.why.startswith("source 'orders' has no watermark")


def test_a_join_on_event_time_is_bounded_by_its_key(plans: Plans) -> None:
    time = plans.marked(plans.stream()).columns[1]

    assert list_findings("MS209", joined(plans, marks=(True, False), keys=((time, time),))) == []


def test_the_fastest_watermark_is_told_of_several(plans: Plans) -> None:
    query = joined(plans, marks=(True, True))
    fast = replace(query, spark={"spark.sql.streaming.multipleWatermarkPolicy": "max"})

    assert [len(list_findings("MS210", item)) for item in (query, fast)] == [0, 1]


def test_repetitions_by_id_are_remembered_for_ever_under_a_watermark(plans: Plans) -> None:
    below = plans.marked(plans.stream())
    key, time, _ = below.columns

    result = [
        len(list_findings("MS211", plans.query(root, APPEND)))
        for root in (
            plans.deduplicate(below, key),
            plans.deduplicate(below, key, time),
            plans.deduplicate(below, key, within=True),
        )
    ]

    assert result == [1, 0, 0]


def test_a_message_s_own_time_among_the_keys_is_told_in_a_script(plans: Plans) -> None:
    names = ("value", "partition", "offset")
    beside = [plans.column(name) for name in names]
    stamped = plans.column("timestamp", "timestamp")
    plain = plans.stream(stamped)
    message = plans.stream(*beside, stamped)

    result = [
        len(list_findings("MS212", plans.query(plans.deduplicate(item, stamped), APPEND)))
        for item in (plain, message)
    ]

    assert result == [0, 1]


def daily(plans: Plans, length: timedelta, zone: str | None) -> PlannedQuery:
    below = plans.marked(plans.stream())
    window = TimeWindow(WindowKind.TUMBLING, "ts", length, length)
    spark = {} if zone is None else {"spark.sql.session.timeZone": zone}
    return plans.query(replace(plans.grouped(below, below.columns[1]), window=window), spark=spark)


@pytest.mark.parametrize(
    ("days", "zone", "count"),
    [
        (1, "Europe/Berlin", 1),
        (7, "Asia/Tokyo", 1),
        (1, "UTC", 0),
        (1, "Etc/UTC", 0),
        (1, None, 0),
        (0.5, "Asia/Tokyo", 0),
    ],
)
def test_windows_of_days_are_cut_at_midnight_utc(
    plans: Plans, days: float, zone: str | None, count: int
) -> None:
    assert len(list_findings("MS213", daily(plans, timedelta(days=days), zone))) == count


def test_windows_of_days_with_a_start_offset_begin_at_another_time(plans: Plans) -> None:
    query = daily(plans, timedelta(days=1), "Asia/Tokyo")
    assert isinstance(query.root, Aggregate)
    assert query.root.window is not None
    window = replace(query.root.window, offset=timedelta(hours=15))

    assert list_findings("MS213", replace(query, root=replace(query.root, window=window))) == []


def test_windows_of_days_over_a_shifted_time_are_local_days(plans: Plans) -> None:
    below = plans.stream()
    local = replace(below.columns[1], name="local", is_copied=False)
    shifted = plans.call("from_utc_timestamp", plans.leaf(below.columns[1]), kind="timestamp")
    alias = Expression("alias", f"{shifted.text} AS local", "timestamp", (shifted,))
    marked = plans.marked(plans.project(below, (local, alias)), "local")
    window = TimeWindow(WindowKind.TUMBLING, "local", timedelta(days=1), timedelta(days=1))
    root = replace(plans.grouped(marked, marked.columns[0]), window=window)
    spark = {"spark.sql.session.timeZone": "Asia/Tokyo"}

    assert list_findings("MS213", plans.query(root, spark=spark)) == []


def test_a_script_without_a_zone_that_groups_by_day_is_told(plans: Plans) -> None:
    below = plans.stream()
    day = replace(below.columns[1], name="day", type="date", is_copied=False)
    cast = Expression("cast", "cast(ts as date)", "date", (plans.leaf(below.columns[1]),))
    project = plans.project(below, (day, Expression("alias", "cast(ts as date) AS day", "date", (cast,))))
    query = plans.query(plans.grouped(project, day))
    chosen = replace(query, spark={"spark.sql.session.timeZone": "UTC"})

    assert [len(list_findings("MS213", item)) for item in (query, chosen)] == [1, 0]


def two_times(plans: Plans) -> Operator:
    below = plans.marked(plans.stream())
    raw = replace(below.columns[1], name="raw")
    result = [(column, plans.leaf(column)) for column in below.columns[:2]]
    return plans.project(below, *result, (raw, plans.leaf(below.columns[1])))


def test_two_event_times_of_rows_to_deduplicate_are_told(plans: Plans) -> None:
    below = two_times(plans)

    (finding,) = list_findings("MS215", plans.query(plans.deduplicate(below, below.columns[0]), APPEND))

    assert "'ts' and 'raw'" in finding.message


def test_an_event_time_that_nothing_uses_is_left_out_by_spark(plans: Plans) -> None:
    below = two_times(plans)
    once = plans.deduplicate(below, below.columns[0])
    root = plans.project(once, *((column, plans.leaf(column)) for column in below.columns[:2]))

    assert list_findings("MS215", plans.query(root, APPEND)) == []


def test_a_time_that_a_join_compares_with_that_of_the_other_side_counts_beside_a_second_one(
    plans: Plans,
) -> None:
    left, right = two_times(plans), plans.marked(plans.stream())
    times = (left.columns[1], right.columns[1])
    join = Join(
        0, "Join", "", (left, right), (*left.columns, *right.columns), is_streaming=True, keys=(times,)
    )

    (finding,) = list_findings("MS215", plans.query(join, APPEND))

    assert "'ts' and 'raw'" in finding.message
    assert "a join of streams" in finding.message


def test_within_the_watermark_spark_leaves_no_event_time_out(plans: Plans) -> None:
    below = two_times(plans)
    once = plans.deduplicate(below, below.columns[0], within=True)
    root = plans.project(once, *((column, plans.leaf(column)) for column in below.columns[:2]))

    assert len(list_findings("MS215", plans.query(root, APPEND))) == 1


def test_an_unstable_key_of_a_script_is_a_warning(plans: Plans) -> None:
    column = Column("key", "string", volatile=(plans.drawn("uuid"),))
    root = plans.project(plans.stream(), (column, plans.call("uuid")))
    sinks = (PlannedSink("delta rows", "delta", key=("key",)),)

    (finding,) = list_findings("MS320", plans.query(root, APPEND, sinks=sinks))

    assert finding.severity is Severity.WARNING


def test_a_watermark_above_a_join_or_a_deduplication_is_the_second_one(plans: Plans) -> None:
    below = plans.marked(plans.stream())
    deduplicated = [plans.deduplicate(below, below.columns[0], within=within) for within in (True, False)]
    joins = [joined(plans, marks=marks).root for marks in ((True, True), (True, False), (False, False))]

    counts = [
        len(list_findings("MS204", plans.query(plans.marked(item), APPEND)))
        for item in (*deduplicated, *joins)
    ]

    assert counts == [1, 1, 1, 1, 0]


def test_spark_accepts_a_second_watermark_if_queries_have_one_stateful_operator_alone(plans: Plans) -> None:
    upper = plans.marked(plans.marked(plans.stream()))
    query = plans.query(upper, APPEND)
    single = replace(query, spark={"spark.sql.streaming.statefulOperator.allowMultiple": "false"})

    assert [len(list_findings("MS204", each)) for each in (query, single)] == [1, 0]


@pytest.mark.parametrize(
    ("node", "timeout", "count"),
    [
        ("FlatMapGroupsInPandasWithState", "event_time", 0),
        ("TransformWithState", "none", 1),
        ("TransformWithStateInPySpark", "event_time", 1),
        ("TransformWithStateInPySpark", "processing_time", 0),
    ],
)
def test_rows_have_no_watermark_above_a_function_whose_times_spark_does_not_know(
    plans: Plans, node: str, timeout: str, count: int
) -> None:
    below = plans.marked(plans.stream())
    called = StatefulFunction(0, node, "", (below,), below.columns, is_streaming=True, timeout=timeout)

    assert len(list_findings("MS204", plans.query(plans.marked(called), APPEND))) == count


def test_a_join_without_an_equal_key_is_told(plans: Plans) -> None:
    key = plans.column("id")
    queries = [joined(plans, marks=(True, True), keys=keys) for keys in ((), ((key, key),))]

    assert [len(list_findings("MS216", query)) for query in queries] == [1, 0]


def test_a_filter_above_a_join_is_no_key_and_no_bound(plans: Plans) -> None:
    root = joined(plans, marks=(True, True), growth=Growth.ROWS).root
    times = [plans.leaf(side.columns[1]) for side in root.inputs]
    compared = plans.call("less_than", *times)
    above = Operator(0, "Filter", "", (root,), root.columns, (compared,), is_streaming=True)

    codes = [len(list_findings(code, plans.query(above, APPEND))) for code in ("MS209", "MS216")]

    assert codes == [1, 1]


def test_a_session_of_nothing_is_told(plans: Plans) -> None:
    below = plans.marked(plans.stream())
    key, time, _ = below.columns
    session = TimeWindow(WindowKind.SESSION, "ts", timedelta(minutes=5))
    grouped = [replace(plans.grouped(below, *keys), window=session) for keys in ((time,), (time, key))]

    assert [len(list_findings("MS216", plans.query(item, APPEND))) for item in grouped] == [1, 0]


def test_a_total_of_a_day_is_a_total(plans: Plans) -> None:
    below = plans.stream()
    day = replace(below.columns[1], name="day", type="date", is_copied=False)
    query = plans.query(plans.grouped(plans.project(below, (day, plans.leaf(day))), day))

    assert [len(list_findings(code, query)) for code in ("MS201", "MS202")] == [0, 1]
