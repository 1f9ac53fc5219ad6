"""Watermarks in a plan, and keys that bound the state by themselves."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from millstream.analysis.query import event_time
from millstream.analysis.query.plan_model import Column, Expression, Operator, PlannedSink

if TYPE_CHECKING:
    from conftest import Plans


def test_a_key_that_kept_its_watermark_is_not_lost(plans: Plans) -> None:
    below = plans.marked(plans.stream())

    assert event_time.find_lost_watermark(plans.grouped(below, below.columns[1])) is None


def test_a_key_computed_from_event_time_is_lost_where_it_was_computed(plans: Plans) -> None:
    below = plans.marked(plans.stream())
    hour = replace(below.columns[1], name="hour", delay=None, is_copied=False)
    project = plans.project(below, (hour, plans.call("alias", plans.leaf(below.columns[1]))))
    grouped = plans.grouped(plans.project(project, (hour, plans.leaf(hour))), hour)

    findings = event_time.find_lost_watermark(grouped)

    assert findings is not None
    assert findings[0] == hour
    assert event_time.find_losing_operator(grouped, findings[1]) is project


def test_a_number_made_of_event_time_is_no_lost_event_time(plans: Plans) -> None:
    below = plans.marked(plans.stream())
    hour = replace(below.columns[1], name="hour", type="int", delay=None)

    assert event_time.find_lost_watermark(plans.grouped(below, hour)) is None


def test_a_second_time_of_the_source_has_no_watermark_to_lose(plans: Plans) -> None:
    below = plans.marked(plans.stream())

    assert event_time.find_lost_watermark(plans.grouped(below, below.columns[2])) is None


def test_two_times_of_one_message_have_one_origin_and_one_watermark(plans: Plans) -> None:
    message = frozenset({("orders", "value")})
    ts, at = (Column(name, "timestamp", origins=message) for name in ("ts", "at"))
    below = plans.marked(plans.stream(ts, at))
    hour = Column("hour", "timestamp", origins=message)
    hours = [
        plans.project(below, (hour, plans.call("date_trunc", plans.leaf(time)))) for time in below.columns
    ]

    findings = [
        event_time.find_lost_watermark(plans.deduplicate(item, item.columns[-1])) for item in (*hours, below)
    ]

    assert [finding is not None for finding in findings] == [True, False, False]


@pytest.mark.parametrize("function", ["alias", "date_trunc"])
def test_a_time_computed_from_event_time_below_its_watermark_is_lost_event_time(
    plans: Plans, function: str
) -> None:
    stream = plans.stream()
    ts = stream.columns[1]
    hour = replace(ts, name="hour", is_copied=function == "alias")
    below = plans.marked(
        plans.project(stream, (ts, plans.leaf(ts)), (hour, plans.call(function, plans.leaf(ts))))
    )
    grouped = plans.grouped(below, below.columns[1])

    lost_watermark = event_time.find_lost_watermark(grouped)

    assert lost_watermark == (below.columns[1], below)
    assert event_time.find_losing_operator(grouped, below) is grouped


def test_two_times_of_one_struct_are_two_times(plans: Plans) -> None:
    message = frozenset({("orders", "value")})
    period = Column("period", "struct<start:timestamp,end:timestamp>", origins=message)
    start, end = (Column(name, "timestamp", origins=message) for name in ("start", "end"))
    fields = plans.project(
        plans.stream(period),
        *((time, plans.call("get_struct_field", plans.leaf(period))) for time in (start, end)),
    )

    grouped = plans.grouped(plans.marked(fields, "start"), end)

    assert event_time.find_lost_watermark(grouped) is None


def test_the_time_of_a_sliding_window_is_followed_to_the_watermark(plans: Plans) -> None:
    message = frozenset({("orders", "value")})
    ts, at = (Column(name, "timestamp", origins=message) for name in ("ts", "at"))
    window = Column("window", "struct<start:timestamp,end:timestamp>", origins=message)
    below = plans.marked(plans.stream(ts, at))

    def over(time: Column) -> Operator:
        row = (plans.call("window", plans.leaf(time)), plans.leaf(time))
        return Operator(0, "Expand", "", (below,), (window, time), (*row, *row), is_streaming=True)

    findings = [event_time.find_lost_watermark(plans.grouped(over(time), window)) for time in below.columns]

    assert [finding is not None for finding in findings] == [True, False]


@pytest.mark.parametrize("function", ["remainder", "hour", "greater_than", "year"])
def test_a_key_with_few_values_is_bounded(plans: Plans, function: str) -> None:
    below = plans.stream()
    key = replace(below.columns[0], name="few", is_copied=False)
    result = plans.call(function, plans.leaf(below.columns[0]), Expression("literal", "5", "int", value=5))
    project = plans.project(below, (key, Expression("alias", f"{result.text} AS few", inputs=(result,))))

    assert event_time.is_bounded(plans.grouped(project, key), key)


@pytest.mark.parametrize(("field", "is_few"), [("HOUR", True), ("dow", True), ("SECOND", False)])
def test_a_part_of_a_time_has_few_values_except_fractions_of_seconds(
    plans: Plans, field: str, is_few: bool
) -> None:
    below = plans.stream()
    key = replace(below.columns[1], name="part", type="int", is_copied=False)
    literal = Expression("literal", f"'{field}'", "string", value=field)
    result = plans.call("extract", literal, plans.leaf(below.columns[1]))
    project = plans.project(below, (key, Expression("alias", f"{result.text} AS part", inputs=(result,))))

    assert event_time.is_bounded(plans.grouped(project, key), key) is is_few


@pytest.mark.parametrize(
    ("function", "pattern", "is_time"),
    [
        ("date_format", "yyyy-MM-dd HH:mm", True),
        ("from_unix_time", "uuuuMMdd'T'HH", True),
        ("date_format", "yyyy-MM-dd", False),
        ("date_format", "yyyy 'Hours'", False),
        ("date_format", "HH:mm", False),
        ("to_unix_timestamp", "yyyy-MM-dd", True),
        ("cast", None, True),
        ("upper", None, False),
    ],
)
def test_a_time_as_text_or_number_is_a_written_time_unless_it_is_a_day_or_a_time_of_day(
    plans: Plans, function: str, pattern: str | None, is_time: bool
) -> None:
    below = plans.stream()
    key = replace(below.columns[1], name="minute", type="string", is_copied=False)
    text = plans.call(
        function, plans.leaf(below.columns[1]), Expression("literal", "", value=pattern), kind="string"
    )
    project = plans.project(below, (key, Expression("alias", f"{text.text} AS minute", "string", (text,))))

    assert event_time.is_written_time(plans.grouped(project, key), key) is is_time


@pytest.mark.parametrize("function", ["cast", "unix_timestamp", "date_format"])
@pytest.mark.parametrize(("unit", "is_time"), [("DAY", False), ("month", False), ("HOUR", True)])
def test_a_time_that_is_truncated_to_a_day_is_no_written_time(
    plans: Plans, function: str, unit: str, is_time: bool
) -> None:
    below = plans.stream()
    key = replace(below.columns[1], name="start", type="string", is_copied=False)
    truncated = plans.call(
        "trunc_timestamp",
        Expression("literal", "", value=unit),
        plans.leaf(below.columns[1]),
    )
    pattern = Expression("literal", "", value="yyyy-MM-dd HH:mm")
    text = plans.call(function, truncated, pattern, kind="string")
    project = plans.project(below, (key, Expression("alias", f"{text.text} AS start", "string", (text,))))

    assert event_time.is_written_time(plans.grouped(project, key), key) is is_time


def test_a_text_around_a_key_with_few_values_has_few_values(plans: Plans) -> None:
    below = plans.stream()
    key = replace(below.columns[0], name="few", is_copied=False)
    few = plans.call("remainder", plans.leaf(below.columns[0]), Expression("literal", "5", "int", value=5))
    result = plans.call("concat", Expression("literal", "'sensor-'", "string", value="sensor-"), few)
    project = plans.project(below, (key, Expression("alias", f"{result.text} AS few", inputs=(result,))))

    assert event_time.is_bounded(plans.grouped(project, key), key)


def test_a_changed_column_is_not_bounded(plans: Plans) -> None:
    below = plans.stream()
    key = replace(below.columns[0], name="upper", is_copied=False)
    result = plans.call("upper", plans.leaf(below.columns[0]))
    project = plans.project(below, (key, Expression("alias", f"{result.text} AS upper", inputs=(result,))))

    assert not event_time.is_bounded(plans.grouped(project, key), key)


def test_a_literal_is_bounded(plans: Plans) -> None:
    assert event_time.is_bounded(plans.stream(), Column("one", "int"))


def test_a_drawn_value_is_not_bounded(plans: Plans) -> None:
    drawn = Column("key", "string", volatile=(plans.drawn("uuid"),))

    assert not event_time.is_bounded(plans.stream(), drawn)


def test_a_sink_with_the_same_key_keeps_what_the_state_keeps(plans: Plans) -> None:
    below = plans.stream()
    grouped = plans.grouped(below, below.columns[0])
    sinks = (PlannedSink("delta totals", "delta", key=("ID",)),)

    assert event_time.is_keyed_by_sinks(plans.query(grouped, sinks=sinks), grouped)


def test_one_sink_of_two_without_the_key_is_enough_to_doubt(plans: Plans) -> None:
    below = plans.stream()
    grouped = plans.grouped(below, below.columns[0])
    sinks = (PlannedSink("delta totals", "delta", key=("id",)), PlannedSink("console", "console"))

    assert not event_time.is_keyed_by_sinks(plans.query(grouped, sinks=sinks), grouped)


def test_a_renamed_key_of_a_sink_is_the_same_key(plans: Plans) -> None:
    below = plans.stream()
    grouped = plans.grouped(below, below.columns[0])
    renamed = replace(below.columns[0], name="order")
    root = plans.project(grouped, (renamed, plans.leaf(below.columns[0])))

    sinks = (PlannedSink("delta totals", "delta", key=("order",)),)

    assert event_time.is_keyed_by_sinks(plans.query(root, sinks=sinks), grouped)
