"""Which column tells a row's time, and from when on a query has yet to write rows itself."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from millstream.analysis.query.plan_model import (
    Aggregate,
    Column,
    Join,
    Operator,
    PlannedQuery,
    Stability,
    TimeBound,
    TimeWindow,
    VolatileExpression,
    WindowKind,
)
from millstream.backfill import event_time
from millstream.backfill.options import BackfillOptions, parse_time
from millstream.diagnostics.failure import InvalidInput
from millstream.pipeline.spec_file import load_text
from millstream.spec.output_mode import OutputMode
from millstream.spec.trigger import Trigger

if TYPE_CHECKING:
    from millstream.pipeline.model import Pipeline

AT = frozenset({("orders", "at")})
TEN = timedelta(minutes=10)
DAY = BackfillOptions(parse_time("2026-01-01"), parse_time("2026-01-02"))
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
SPEC = """
name: shop
sources:
  orders:
    json: in
    schema: {id: string, at: timestamp, paid: timestamp}
    watermark: {event_time: at, delay_threshold: 1 minute}
queries:
  orders: {to: {delta: lake}}
"""


def pipeline(zone: str | None = None) -> Pipeline:
    spark = f"spark: {{spark.sql.session.timeZone: {zone}}}\n" if zone else ""
    loaded = load_text("pipeline.yml", SPEC + spark, Path("/shop"), {})
    assert loaded.pipeline is not None, loaded.findings
    return loaded.pipeline


def planned(
    *columns: Column, root: Operator | None = None, mode: OutputMode = OutputMode.APPEND
) -> PlannedQuery:
    return PlannedQuery("orders", root or Operator(0, "Project", "", columns=columns), mode, Trigger())


def window(mode: OutputMode = OutputMode.APPEND) -> PlannedQuery:
    time_window = TimeWindow(WindowKind.TUMBLING, "at", TEN, TEN)
    return planned(root=Aggregate(0, "Aggregate", "", is_streaming=True, window=time_window), mode=mode)


def test_the_column_made_of_event_time_alone_is_the_one() -> None:
    other = Column("paid", "timestamp", origins=frozenset({("orders", "paid")}))

    time_range = event_time.select_time_range(
        pipeline(), planned(Column("at", "timestamp", origins=AT), other), DAY
    )

    assert (time_range.path, time_range.start, time_range.end) == (("at",), DAY.start, DAY.end)


def test_the_end_of_a_window_is_not_its_time() -> None:
    columns = (Column("window_start", "timestamp", origins=AT), Column("window_end", "timestamp", origins=AT))

    assert event_time.select_time_range(pipeline(), planned(*columns), DAY).path == ("window_start",)


def test_a_window_tells_its_start() -> None:
    column = Column("window", "struct<start:timestamp,end:timestamp>", origins=AT)

    assert event_time.select_time_range(pipeline(), planned(column), DAY).path == ("window", "start")


def test_a_column_that_is_no_time_is_refused() -> None:
    with pytest.raises(InvalidInput, match="column 'id' is string, which is not a time"):
        event_time.find_event_time_column(pipeline(), planned(Column("id", "string")), "id")


def test_a_column_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(InvalidInput) as error:
        event_time.find_event_time_column(pipeline(), planned(Column("id", "string")), "day")

    assert error.value.fix == "its columns are id"


def test_dates_are_cut_at_midnight_only() -> None:
    options = BackfillOptions(parse_time("2026-01-01 06:00"), None)

    with pytest.raises(InvalidInput, match="--from is in the middle of a day"):
        event_time.select_time_range(pipeline(), planned(Column("day", "date", origins=AT)), options)


def test_midnight_of_a_date_is_that_of_the_sessions_zone() -> None:
    query = planned(Column("day", "date", origins=AT))
    midnight = BackfillOptions(parse_time("2026-01-01T00:00+01:00"))

    assert event_time.select_time_range(pipeline("Europe/Berlin"), query, midnight).start == midnight.start
    # In Berlin this is one o'clock, from which on the first day is the second of January.
    with pytest.raises(InvalidInput, match="--from is in the middle of a day in Europe/Berlin") as error:
        event_time.select_time_range(pipeline("Europe/Berlin"), query, DAY)
    assert error.value.fix.endswith("--from 2026-01-01T00:00+01:00")


@pytest.mark.parametrize("zone", ["GMT+1", "+01:00"])
def test_the_zone_of_a_session_may_be_an_offset(zone: str) -> None:
    with pytest.raises(InvalidInput, match="--from is in the middle of a day") as error:
        event_time.select_time_range(pipeline(f"'{zone}'"), planned(Column("day", "date", origins=AT)), DAY)

    assert error.value.fix.endswith("--from 2026-01-01T00:00+01:00")


def test_no_column_is_asked_for_without_a_range() -> None:
    assert event_time.select_time_range(
        pipeline(), planned(Column("id", "string")), BackfillOptions()
    ).is_unbounded


def test_in_append_mode_a_window_is_settled_once_the_watermark_has_passed_its_end() -> None:
    assert event_time.find_write_frontier(window(), NOON, BackfillOptions(compare=True)) == NOON - TEN


def test_in_update_mode_open_windows_are_compared_and_not_written() -> None:
    query = window(OutputMode.UPDATE)

    assert event_time.find_write_frontier(query, NOON, BackfillOptions(compare=True)) is None
    assert event_time.find_write_frontier(query, NOON, BackfillOptions(into="side")) is None
    assert event_time.find_write_frontier(query, NOON, BackfillOptions()) == NOON - TEN


def test_a_query_without_state_keeps_no_row_to_itself() -> None:
    assert event_time.find_write_frontier(planned(), NOON, BackfillOptions()) is None


def test_an_outer_join_of_streams_holds_rows_back_as_far_as_its_bound_reaches() -> None:
    sides = (Operator(1, "Left", "", is_streaming=True), Operator(2, "Right", "", is_streaming=True))
    bound = TimeBound("", "a", "b", timedelta(), timedelta(hours=4))

    for how, until in (("left_outer", NOON - timedelta(hours=4)), ("inner", None)):
        join = Join(0, "Join", "", inputs=sides, is_streaming=True, how=how, bound=bound)
        assert event_time.find_write_frontier(planned(root=join), NOON, BackfillOptions()) == until


def test_a_key_that_changes_at_each_run_cannot_be_compared() -> None:
    dice = VolatileExpression("uuid", "uuid()", Stability.UNSTABLE)
    columns = (Column("id", "string", volatile=(dice,)), Column("at", "timestamp"))

    assert event_time.nondeterministic_columns(planned(*columns), ()) == ["id"]
    with pytest.raises(
        InvalidInput, match=r"its key depends on uuid\(\), which has different values in each run"
    ):
        event_time.nondeterministic_columns(planned(*columns), ("ID",))
