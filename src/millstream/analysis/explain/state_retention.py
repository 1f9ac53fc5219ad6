"""Describe an operator's state in words: its entries, their removal, late rows, and the time of output."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from millstream.analysis.query.phrasing import format_duration, join_words
from millstream.analysis.query.plan_model import (
    Aggregate,
    Deduplicate,
    Growth,
    Join,
    StatefulFunction,
    WatermarkOperator,
    WindowKind,
)
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.analysis.query.plan_model import Column, Operator, StatefulOperator, TimeWindow

# Joins that output an unmatched row once no match can arrive, and the sides of these rows.
_OUTER_SIDES = {
    "left_outer": "left side",
    "right_outer": "right side",
    "full_outer": "either side",
}

BOUND = {
    Growth.WATERMARK: "bounded by the watermark",
    Growth.KEYS: "one entry per key, forever: bounded only if the number of keys is",
    Growth.ROWS: "rows are kept forever: unbounded",
    Growth.OWN: "as the function decides",
}


def describe_entry(operator: StatefulOperator) -> str:
    """Describe one entry of the state."""
    if isinstance(operator, Aggregate):
        if not operator.keys:
            return "a single entry: the running result"
        return f"one entry for each {join_words(name_keys(operator.keys, operator.window))}, with its running result"
    if isinstance(operator, Deduplicate):
        return f"one entry for each {join_words(name_keys(operator.keys))}: only the key, not its row"
    if isinstance(operator, Join):
        return "each row of both sides, until no row of the other side can match it"
    if isinstance(operator, StatefulFunction):
        keys = f" for each {join_words(name_keys(operator.keys))}" if operator.keys else ""
        return f"the state of {operator.function or 'the function'}{keys}"
    return "internal state of Spark"


def describe_removal(operator: StatefulOperator, mode: OutputMode) -> str:
    """Describe when an entry is removed, and the earliest event time for it."""
    if isinstance(operator, Aggregate):
        if mode is OutputMode.COMPLETE:
            return "never: complete mode writes the whole result each time, so it keeps it"
        key = operator.event_time_key
        if key is None or key.delay is None:
            return operator.leaves or "never"
        return (
            _describe_window_removal(operator.window, key.delay)
            if operator.window
            else _describe_key_removal(key)
        )
    if isinstance(operator, Deduplicate):
        if operator.is_within_watermark and (delay := find_watermark_delay(operator)) is not None:
            return (
                f"once the watermark passes the time of its first row plus {format_duration(delay)}, "
                f"that is {format_duration(2 * delay)} after that row at the earliest"
            )
        event_time_key = next((key for key in operator.keys if key.delay is not None), None)
        return (
            _describe_key_removal(event_time_key)
            if event_time_key and not operator.is_within_watermark
            else operator.leaves or "never"
        )
    return _describe_join_removal(operator) if isinstance(operator, Join) else operator.leaves or "never"


def describe_late_row(operator: StatefulOperator, mode: OutputMode) -> str:
    """Describe the effect on a row that is too late for this operator; empty if no row is too late."""
    if isinstance(operator, Aggregate):
        if mode is OutputMode.COMPLETE or operator.event_time_key is None:
            return ""
        when = (
            "its window has ended before the watermark"
            if operator.window
            else "it is older than the watermark"
        )
        return f"dropped when {when}; counted once per group and task, not once per row"
    if isinstance(operator, StatefulFunction):
        return "dropped when it is older than the watermark" if operator.timeout == "event_time" else ""
    if isinstance(operator, Join):
        marked_sides = [
            side for side in operator.inputs if any(column.delay is not None for column in side.columns)
        ]
        if not marked_sides:
            return ""
        sides = (
            "" if len(marked_sides) == len(operator.inputs) else " and comes from the side with a watermark"
        )
        return f"dropped when it is older than the watermark{sides}"
    marked_sides = [
        side for side in operator.inputs if any(column.delay is not None for column in side.columns)
    ]
    return "dropped when it is older than the watermark" if marked_sides else ""


def describe_output_time(operator: StatefulOperator, mode: OutputMode) -> str:
    """Describe when an operator outputs its rows; empty if in the batch that read their input."""
    if isinstance(operator, Join) and operator.how in _OUTER_SIDES:
        return (
            "a pair is output with the batch that completes it; "
            f"a row of the {_OUTER_SIDES[operator.how]} without a match once it leaves the state"
        )
    if not isinstance(operator, Aggregate) or mode is not OutputMode.APPEND:
        return ""
    key = operator.event_time_key
    if key is None or key.delay is None:
        return ""
    sentence = "a group is output once, when it leaves the state"
    window = operator.window
    if window is None or window.length is None:
        return f"{sentence}: {format_duration(key.delay)} of event time late, and one batch more"
    delay_text, batch_text = (
        format_duration(window.length + key.delay),
        "in the batch after newer rows have advanced event time",
    )
    if window.kind is WindowKind.SESSION:
        return f"a session is output once, {batch_text} {delay_text} past its last row"
    return f"a window is output once, {batch_text} {delay_text} past its start"


def name_keys(keys: Sequence[Column], window: TimeWindow | None = None) -> list[str]:
    """List the keys by name, and the window in words."""
    return [
        describe_window(window)
        if window and key.type.startswith("struct<start:timestamp")
        else f"'{key.name}'"
        for key in keys
    ]


def describe_window(window: TimeWindow) -> str:
    """Describe a window: `window of 10 minutes over 'ts'`."""
    if window.kind is WindowKind.SESSION:
        gap_text = (
            f"ended by {format_duration(window.length)} without a row"
            if window.length
            else "with a gap per row"
        )
        return f"session of '{window.column}' {gap_text}"
    slide_text = (
        f" every {format_duration(window.slide)}"
        if window.kind is WindowKind.SLIDING and window.slide
        else ""
    )
    return f"window of {format_duration(window.length or timedelta())}{slide_text} over '{window.column}'"


def find_watermark_delay(operator: Operator) -> timedelta | None:
    """Return the delay of the watermark of an operator's input; the longest if there are several."""
    delays = [column.delay for side in operator.inputs for column in side.columns if column.delay is not None]
    delays = delays or [
        operator_below.delay
        for operator_below in operator.walk()
        if isinstance(operator_below, WatermarkOperator)
    ]
    return max(delays, default=None)


def _describe_window_removal(window: TimeWindow, delay: timedelta) -> str:
    if window.length is None:
        return f"once the watermark passes its end, {format_duration(delay)} after that at the earliest"
    total = format_duration(window.length + delay)
    if window.kind is WindowKind.SESSION:
        return (
            f"once the watermark passes its end, {format_duration(window.length)} after its last row: "
            f"that is {total} after that row at the earliest"
        )
    return f"once the watermark passes its end, that is {total} after it began at the earliest"


def _describe_key_removal(key: Column) -> str:
    assert key.delay is not None
    return (
        f"once the watermark passes its '{key.name}', that is {format_duration(key.delay)} after it at the "
        "earliest"
    )


def _describe_join_removal(join: Join) -> str:
    """Describe when each side's rows are removed: after the watermark has passed every row that they could match."""
    bound = join.bound
    if join.growth is not Growth.WATERMARK or bound is None:
        return join.leaves or "never"
    sides = []
    for side, interval in (
        ("left", bound.latest),
        ("right", -bound.earliest if bound.earliest is not None else None),
    ):
        if interval is None:
            sides.append(f"a row of the {side} side never")
        else:
            delay = find_watermark_delay(join) or timedelta()
            total = max(interval, timedelta()) + delay
            sides.append(f"a row of the {side} side {format_duration(total)} after its time at the earliest")
    return f"once the watermark has passed every row that it may match: {join_words(sides)}"
