"""What a query's plan says of its output: how a reader sees it, what waits for the watermark, where windows end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.analysis.dataflow import (
    Aggregate,
    Deduplicate,
    Join,
    Read,
    Stability,
    StatefulFunction,
    Watermark,
    WindowKind,
)
from millstream.analysis.lineage import grouping, made_of, outputs
from millstream.spec.mode import OutputMode
from millstream.testing.held import Reading

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.dataflow import Operator, TimeWindow, Volatile
    from millstream.pipeline.model import Pipeline

_MICROSECOND = 1_000_000
_OUTER = frozenset({"left_outer", "right_outer", "full_outer", "left_anti"})


@dataclass(frozen=True)
class Shape:
    """What the plan of a query says of its rows."""

    readings: tuple[Reading, ...]
    """How its sinks' readers see them, each way once."""
    waits: bool
    """May a row wait for the watermark before it comes out?"""
    clock: bool
    """Do its rows depend on the clock?"""
    own_state: bool
    """Does a function of the user's keep state, so that what it gives depends on its calls?"""
    strange: tuple[Volatile, ...]
    """What may give another value each time it is computed."""
    window: TimeWindow | None
    """The window that rows are grouped by first."""
    deduplications: int
    """So many operators keep one of several rows, of which any is right."""
    forgets: bool
    """Does a view drop repeated rows within the watermark, so that a key may come again?"""
    marked: frozenset[str]
    """Watermarks that do not come from a source of the spec, by their column."""
    folds: bool = True
    """Can it be told what a reader holds in the end?"""


def shape(pipeline: Pipeline, query: str, root: Operator) -> Shape:
    """Read a query's plan. `root` is the plan of its streaming DataFrame, sources by their names in the spec."""
    mode = pipeline.queries[query].output_mode
    streaming = [one for one in root.walk() if one.streaming]
    aggregates = [one for one in streaming if isinstance(one, Aggregate)]
    functions = any(isinstance(one, StatefulFunction) for one in streaming)
    outer = any(isinstance(one, Join) and one.of_streams and one.how in _OUTER for one in streaming)
    volatile = {one for column in root.columns for one in column.volatile}
    named = {one.source for one in streaming if isinstance(one, Read)}
    read = [name for name in pipeline.sources if name in named]
    known = {
        entry.watermark.event_time.lower()
        for entry in pipeline.sources.values()
        if entry.watermark is not None
    }
    alike = _alike(root)
    # Of a DISTINCT, update mode gives a row again whenever it comes.
    keyed = _grouped(root, aggregates) or alike if mode is OutputMode.UPDATE else ()
    readings: dict[tuple[str, ...], Reading] = {}
    for entry in pipeline.queries[query].to:
        key = entry.sink.row_key if entry.sink.replaces(mode) and not entry.sink.reorders else keyed
        readings.setdefault(key, Reading(entry.sink.describe(), mode, key, () if key else alike))
    return Shape(
        readings=tuple(readings.values()),
        waits=mode is not OutputMode.COMPLETE
        and (outer or functions or (mode is OutputMode.APPEND and bool(aggregates))),
        clock=any(one.stability is Stability.BATCH for one in volatile),
        own_state=functions,
        strange=tuple(
            one
            for one in volatile
            if one.stability not in (Stability.STABLE, Stability.BATCH, Stability.UNKNOWN)
        ),
        window=next((one.window for one in reversed(aggregates) if one.window is not None), None),
        forgets=sum(isinstance(one, Deduplicate) and one.within_watermark for one in streaming)
        > sum(bool(pipeline.sources[name].drop_duplicates_within_watermark) for name in read),
        deduplications=sum(isinstance(one, Deduplicate) for one in streaming),
        marked=frozenset(
            one.event_time
            for one in streaming
            if isinstance(one, Watermark) and one.event_time.lower() not in known
        ),
        folds=not (mode is OutputMode.UPDATE and () in readings and (aggregates or functions)),
    )


def window_end(window: TimeWindow | None, time: int) -> int:
    """When the last window ends that a row of this time falls in; the time itself without a window.

    Microseconds since 1970. A window's own offset is not known here.
    """
    if window is None or window.length is None:
        return time
    length = int(window.length.total_seconds() * _MICROSECOND)
    if window.kind is WindowKind.SESSION:
        return time + length
    slide = int(window.slide.total_seconds() * _MICROSECOND) if window.slide else length
    return time // slide * slide + length


def _grouped(root: Operator, aggregates: list[Aggregate]) -> tuple[str, ...]:
    """The columns of the result that what is grouped by alone decides, where these tell its rows apart."""
    if not aggregates:
        return ()
    top = aggregates[0]
    made = outputs(top) or ()
    found, seen = [], set()
    for at, column in enumerate(root.columns):
        held = made_of(root, at, top)
        if not held or any(one >= len(made) for one in held):
            continue
        if not any(node in top.functions for one in held for node in made[one].walk()):
            found.append(column.name)
            seen |= {node.column.name for one in held for node in made[one].walk() if node.column is not None}
    keys = {node.column.name for one in grouping(top) for node in one.walk() if node.column is not None}
    return tuple(found) if keys <= seen else ()


def _alike(root: Operator) -> tuple[str, ...]:
    """The columns of the result that are the keys of a deduplication at its top, if all of them are there."""
    one = root
    while not isinstance(one, Deduplicate) and len(one.inputs) == 1 and one.node in ("Project", "Filter"):
        one = one.inputs[0]
    if not isinstance(one, Deduplicate):
        return ()
    found = dict(_copied(root, one))
    names = [found.get(key.name.lower()) for key in one.keys]
    return tuple(name for name in names if name is not None) if None not in names else ()


def _copied(root: Operator, below: Operator) -> Iterator[tuple[str, str]]:
    """Columns of an operator that stand unchanged in the result: the name below in small letters, and its name."""
    for at, column in enumerate(root.columns):
        held = made_of(root, at, below)
        if held is not None and len(held) == 1:
            (place,) = held
            if place < len(below.columns) and column.copied:
                yield below.columns[place].name.lower(), column.name
