"""Which column of a query's rows tells their event time, and from when on the query itself has yet to write rows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from millstream.analysis.dataflow import Aggregate, Join, Stability, StatefulFunction
from millstream.analysis.eventtime import definition, is_time
from millstream.connectors.cut import Cut
from millstream.diagnostics.failure import WrongUse
from millstream.spec.mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.analysis.dataflow import Column, PlannedQuery
    from millstream.backfill.wish import Wish
    from millstream.pipeline.model import Pipeline

_CURE = "name the column that tells the time of a row: --column NAME"
# What a batch cannot repeat: the moment it runs, how rows were cut into tasks, a dice.
_FLEETING = (Stability.BATCH, Stability.PARTITION, Stability.UNSTABLE)


def cut_of(pipeline: Pipeline, planned: PlannedQuery, wish: Wish) -> Cut:
    """The rows that are meant. Raises `WrongUse` when a range is given and no column tells a row's time."""
    if wish.start is None and wish.end is None:
        return Cut()
    column, path = told(pipeline, planned, wish.column)
    if column.type.lower() == "date":
        for word, moment in (("--from", wish.start), ("--to", wish.end)):
            if moment is not None and moment.astimezone(UTC).time() != datetime.min.time():
                raise WrongUse(
                    f"query '{planned.name}': the rows' time is column '{column.name}', a date, and {word} lies in "
                    "the middle of one",
                    f"give {word} a date, in UTC",
                )
    return Cut(path, wish.start, wish.end)


def told(
    pipeline: Pipeline, planned: PlannedQuery, name: str | None = None
) -> tuple[Column, tuple[str, ...]]:
    """The column that tells a row's time, and its path; the one of that name if given. Raises `WrongUse`."""
    return _named(planned, name) if name else _found(pipeline, planned)


def _named(planned: PlannedQuery, name: str) -> tuple[Column, tuple[str, ...]]:
    """The column of that name, or its field."""
    whole = planned.root.column(name)
    first, _, rest = name.partition(".")
    column = whole or planned.root.column(first)
    if column is None:
        known = ", ".join(one.name for one in planned.root.columns)
        raise WrongUse(f"query '{planned.name}' gives no column '{name}'", f"its columns are {known}")
    if not is_time(column):
        raise WrongUse(
            f"query '{planned.name}': column '{column.name}' is {column.type}, and tells no time",
            "name a column of timestamps or dates, or a window",
        )
    return column, _path(column, "" if whole else rest)


def _found(pipeline: Pipeline, planned: PlannedQuery) -> tuple[Column, tuple[str, ...]]:
    """The one column that is made of event time alone, the ends of windows apart."""
    marked = {
        (name, entry.watermark.event_time)
        for name, entry in pipeline.sources.items()
        if entry.watermark is not None
    }
    times = [one for one in planned.root.columns if is_time(one) and one.origins and one.origins <= marked]
    begins = [one for one in times if not _ends(planned, one)]
    if len(begins) == 1:
        return begins[0], _path(begins[0], "")
    if not begins:
        raise WrongUse(
            f"query '{planned.name}': no column of its rows is made of event time alone, so that nothing tells "
            "which rows lie in the range",
            _CURE,
        )
    raise WrongUse(
        f"query '{planned.name}': columns {' and '.join(one.name for one in begins)} both tell a time", _CURE
    )


def _ends(planned: PlannedQuery, column: Column) -> bool:
    """Is it the end of a window?"""
    made = definition(planned.root, column.name)
    text = made[1].text.partition(" AS ")[0].lower() if made else ""
    return text.rstrip("`").endswith((".end", ".`end")) or column.name.lower().endswith("end")


def _path(column: Column, field: str) -> tuple[str, ...]:
    return (column.name, field or "start") if column.type.lower().startswith("struct") else (column.name,)


def reach(planned: PlannedQuery) -> timedelta:
    """How far the input of a row may lie from the row's own time: lengths of windows, bounds of joins."""
    far = timedelta()
    for one in planned.walk():
        if isinstance(one, Aggregate) and one.window and one.window.length:
            far += one.window.length
        if isinstance(one, Join) and one.bound:
            far += max(
                (abs(side) for side in (one.bound.earliest, one.bound.latest) if side is not None),
                default=timedelta(),
            )
    return far


def holds_back(planned: PlannedQuery) -> bool:
    """Does it write a row later than it has read what the row is made of, or write it again?"""
    return any(
        isinstance(one, Aggregate | StatefulFunction)
        or (isinstance(one, Join) and one.of_streams and one.how not in ("inner", "left_semi", "cross"))
        for one in planned.walk()
        if one.streaming
    )


def settled(planned: PlannedQuery, watermark: datetime | None, wish: Wish) -> datetime | None:
    """From this moment on the query itself has rows to write; None where it never keeps any to itself.

    `watermark` is that of its last batch. In append mode such rows are not there yet; in the other modes they are,
    and a later batch replaces them: they can be compared, and are not written.
    """
    if watermark is None or not holds_back(planned):
        return None
    if planned.output_mode is not OutputMode.APPEND and (not wish.writes or wish.into):
        return None
    return watermark - reach(planned)


def fleeting(planned: PlannedQuery, key: Sequence[str]) -> list[str]:
    """The columns that no second run repeats. Raises `WrongUse` when those are its key, or all of them."""
    lower = {name.lower() for name in key}
    found = [
        one.name for one in planned.root.columns if any(it.stability in _FLEETING for it in one.volatile)
    ]
    bad = [name for name in found if name.lower() in lower]
    if bad or (found and len(found) == len(planned.root.columns)):
        said = next(
            it.text
            for one in planned.root.columns
            if one.name in (bad or found)
            for it in one.volatile
            if it.stability in _FLEETING
        )
        raise WrongUse(
            f"query '{planned.name}': {'its key' if bad else 'each of its rows'} depends on {said}, which gives "
            "other values at each run",
            "take it out of the view, or carry the value in the input",
        )
    return found
