"""What an operator keeps, in words: an entry, when it leaves, what a late row meets, when its rows come out."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from millstream.analysis.dataflow import (
    Aggregate,
    Deduplicate,
    Growth,
    Join,
    StatefulFunction,
    Watermark,
    WindowKind,
)
from millstream.analysis.wording import length, listed
from millstream.spec.mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.analysis.dataflow import Column, Operator, Stateful, TimeWindow

# Joins that give a row without a partner once none can come any more, and the sides whose rows these are.
_PADDED = {
    "left_outer": "left side",
    "right_outer": "right side",
    "full_outer": "either side",
}

BOUND = {
    Growth.WATERMARK: "bounded by the watermark",
    Growth.KEYS: "one entry a key, for ever: bounded only where the keys are",
    Growth.ROWS: "rows are kept for ever: without bound",
    Growth.OWN: "as the function decides",
}


def entry(operator: Stateful) -> str:
    """What one entry of the state is."""
    if isinstance(operator, Aggregate):
        if not operator.keys:
            return "one entry in all: the running result"
        return f"one entry for each {listed(named(operator.keys, operator.window))}, with its running result"
    if isinstance(operator, Deduplicate):
        return f"one entry for each {listed(named(operator.keys))}: the key alone, not its row"
    if isinstance(operator, Join):
        return "each row of both sides, until no row of the other side can match it"
    if isinstance(operator, StatefulFunction):
        keys = f" for each {listed(named(operator.keys))}" if operator.keys else ""
        return f"what {operator.function or 'the function'} keeps{keys}"
    return "what Spark keeps of it"


def leaves(operator: Stateful, mode: OutputMode) -> str:
    """What makes an entry leave, and when at the earliest, in event time that must pass."""
    if isinstance(operator, Aggregate):
        if mode is OutputMode.COMPLETE:
            return "never: complete mode writes the whole result each time, and keeps it for that"
        key = operator.event_time_key
        if key is None or key.delay is None:
            return operator.leaves or "never"
        return _window_leaves(operator.window, key.delay) if operator.window else _passes(key)
    if isinstance(operator, Deduplicate):
        if operator.within_watermark and (delay := below(operator)) is not None:
            return (
                f"once the watermark passes the time of its first row plus {length(delay)}, "
                f"that is {length(2 * delay)} after that row at the earliest"
            )
        timed = next((key for key in operator.keys if key.delay is not None), None)
        return _passes(timed) if timed and not operator.within_watermark else operator.leaves or "never"
    return _join_leaves(operator) if isinstance(operator, Join) else operator.leaves or "never"


def late(operator: Stateful, mode: OutputMode) -> str:
    """What becomes of a row that is too late for this operator; empty where none is too late."""
    if isinstance(operator, Aggregate):
        if mode is OutputMode.COMPLETE or operator.event_time_key is None:
            return ""
        when = (
            "its window has ended before the watermark"
            if operator.window
            else "it is older than the watermark"
        )
        return f"dropped when {when}; counted once a group and task, not once a row"
    if isinstance(operator, StatefulFunction):
        return "dropped when it is older than the watermark" if operator.timeout == "event_time" else ""
    if isinstance(operator, Join):
        marked = [side for side in operator.inputs if any(one.delay is not None for one in side.columns)]
        if not marked:
            return ""
        sides = "" if len(marked) == len(operator.inputs) else " and comes from the side that has one"
        return f"dropped when it is older than the watermark{sides}"
    marked = [side for side in operator.inputs if any(one.delay is not None for one in side.columns)]
    return "dropped when it is older than the watermark" if marked else ""


def comes(operator: Stateful, mode: OutputMode) -> str:
    """When the first rows of an operator come out; empty where that is the batch that read their input."""
    if isinstance(operator, Join) and operator.how in _PADDED:
        return (
            "a pair comes out with the batch that completes it; "
            f"a row of the {_PADDED[operator.how]} without a partner once it leaves the state"
        )
    if not isinstance(operator, Aggregate) or mode is not OutputMode.APPEND:
        return ""
    key = operator.event_time_key
    if key is None or key.delay is None:
        return ""
    first = "a group comes out once, when it leaves the state"
    window = operator.window
    if window is None or window.length is None:
        return f"{first}: {length(key.delay)} of event time late, and one batch more"
    passed, batch = length(window.length + key.delay), "in the batch after newer rows have moved event time"
    if window.kind is WindowKind.SESSION:
        return f"a session comes out once, {batch} {passed} past its last row"
    return f"a window comes out once, {batch} {passed} past its beginning"


def named(keys: Sequence[Column], window: TimeWindow | None = None) -> list[str]:
    """Keys by name, a window in words."""
    return [
        spoken(window) if window and key.type.startswith("struct<start:timestamp") else f"'{key.name}'"
        for key in keys
    ]


def spoken(window: TimeWindow) -> str:
    """`window of 10 minutes over 'ts'`."""
    if window.kind is WindowKind.SESSION:
        gap = f"ended by {length(window.length)} without a row" if window.length else "with a gap of its own"
        return f"session of '{window.column}' {gap}"
    every = f" every {length(window.slide)}" if window.kind is WindowKind.SLIDING and window.slide else ""
    return f"window of {length(window.length or timedelta())}{every} over '{window.column}'"


def below(operator: Operator) -> timedelta | None:
    """The delay of the watermark that reaches an operator; the longest, where several do."""
    found = [column.delay for side in operator.inputs for column in side.columns if column.delay is not None]
    found = found or [one.delay for one in operator.walk() if isinstance(one, Watermark)]
    return max(found, default=None)


def _window_leaves(window: TimeWindow, delay: timedelta) -> str:
    if window.length is None:
        return f"once the watermark passes its end, {length(delay)} after that at the earliest"
    sum_ = length(window.length + delay)
    if window.kind is WindowKind.SESSION:
        return (
            f"once the watermark passes its end, {length(window.length)} after its last row: "
            f"that is {sum_} after that row at the earliest"
        )
    return f"once the watermark passes its end, that is {sum_} after it began at the earliest"


def _passes(key: Column) -> str:
    assert key.delay is not None
    return f"once the watermark passes its '{key.name}', that is {length(key.delay)} after it at the earliest"


def _join_leaves(join: Join) -> str:
    """Each side's rows leave when the watermark has passed all that they could match."""
    bound = join.bound
    if join.growth is not Growth.WATERMARK or bound is None:
        return join.leaves or "never"
    waits = []
    for side, wait in (
        ("left", bound.latest),
        ("right", -bound.earliest if bound.earliest is not None else None),
    ):
        if wait is None:
            waits.append(f"a row of the {side} side never")
        else:
            delay = below(join) or timedelta()
            total = max(wait, timedelta()) + delay
            waits.append(f"a row of the {side} side {length(total)} after its time at the earliest")
    return f"once the watermark has passed every row that it may match: {listed(waits)}"
