"""Which sessions are closed, and when a backfill cannot tell."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from millstream.analysis.query.plan_model import (
    Aggregate,
    Column,
    Expression,
    PlannedQuery,
    TimeWindow,
    WindowKind,
)
from millstream.backfill import session_windows
from millstream.backfill.options import BackfillOptions, PastRows
from millstream.backfill.targets import BackfillTarget
from millstream.diagnostics.failure import InvalidInput
from millstream.pipeline.spec_file import load_text
from millstream.spec.output_mode import OutputMode
from millstream.spec.trigger import Trigger

if TYPE_CHECKING:
    from millstream.pipeline.model import Pipeline

AT = frozenset({("orders", "at")})
START = Column("since", "timestamp", origins=AT)
END = Column("until", "timestamp", origins=AT)
SPEC = """
name: shop
sources:
  orders:
    json: in
    schema: {id: string, at: timestamp}
    watermark: {event_time: at, delay_threshold: 1 minute}
queries:
  orders: {to: [{delta: lake}, {delta: {path: keyed, merge_on: [since]}}]}
"""


def pipeline() -> Pipeline:
    loaded = load_text("pipeline.yml", SPEC, Path("/shop"), {})
    assert loaded.pipeline is not None, loaded.findings
    return loaded.pipeline


def planned(
    *columns: Column, kind: WindowKind = WindowKind.SESSION, mode: OutputMode = OutputMode.APPEND
) -> PlannedQuery:
    window = TimeWindow(kind, "at", timedelta(minutes=10))
    expressions = tuple(
        Expression("alias", f"session_window.end AS {column.name}", column.type)
        for column in columns
        if column is END
    )
    root = Aggregate(
        0, "Aggregate", "", columns=columns, expressions=expressions, is_streaming=True, window=window
    )
    return PlannedQuery("orders", root, mode, Trigger())


def targets(number: int, *, side: bool = False) -> list[BackfillTarget]:
    sink = pipeline().queries["orders"].to[number].sink
    return [BackfillTarget("orders", "key", sink, OutputMode.APPEND, side)]


def test_the_end_of_a_session_is_a_column_or_a_field_of_its_window() -> None:
    window = Column("session_window", "struct<start:timestamp,end:timestamp>", origins=AT)

    assert session_windows.find_window_ends(pipeline(), planned(START, END)) == [("until",)]
    assert session_windows.find_window_ends(pipeline(), planned(window)) == [("session_window", "end")]
    assert session_windows.find_window_ends(pipeline(), planned(START)) == []


def test_a_column_is_no_end_because_of_its_name() -> None:
    assert session_windows.find_window_ends(pipeline(), planned(replace(START, name="weekend"))) == []


def test_a_session_is_closed_once_the_watermark_has_reached_its_end() -> None:
    condition = session_windows.closed_windows([("until",)], datetime(2026, 1, 1, 12, tzinfo=UTC))

    assert condition == "`until` < TIMESTAMP '2026-01-01 12:00:00.000001Z'"


@pytest.mark.parametrize(
    ("columns", "number", "options"),
    [
        ((START, END), 0, {}),
        ((START,), 1, {}),
        ((START,), 0, {"compare": True}),
        ((START,), 0, {"replace": True, "past": PastRows()}),
        ((START, END), 0, {"replace": True}),
    ],
)
def test_sessions_are_backfilled_if_open_ones_are_known_or_replaced_later(
    columns: tuple[Column, ...], number: int, options: dict[str, Any]
) -> None:
    query = planned(*columns)

    session_windows.require_closed_sessions(pipeline(), query, targets(number), BackfillOptions(**options))


def test_without_their_end_sessions_are_written_to_another_target_only() -> None:
    query = planned(START)

    session_windows.require_closed_sessions(pipeline(), query, targets(0, side=True), BackfillOptions())
    with pytest.raises(InvalidInput, match="its result does not contain their end") as error:
        session_windows.require_closed_sessions(pipeline(), query, targets(0), BackfillOptions())

    assert error.value.fix == "write to another target with --into"


def test_windows_of_a_known_length_need_no_end() -> None:
    query = planned(START, kind=WindowKind.TUMBLING)

    session_windows.require_closed_sessions(pipeline(), query, targets(0), BackfillOptions())


def test_open_sessions_that_the_query_has_written_are_not_deleted() -> None:
    query = planned(START, END, mode=OutputMode.UPDATE)

    with pytest.raises(InvalidInput, match="--replace would delete sessions that are still open"):
        session_windows.require_closed_sessions(pipeline(), query, targets(1), BackfillOptions(replace=True))
