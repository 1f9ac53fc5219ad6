"""A streaming aggregation or deduplication over a source that has no watermark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis import eventtime
from millstream.analysis.dataflow import Aggregate, Deduplicate
from millstream.analysis.facts import Code, Facts
from millstream.analysis.grouped import grouped
from millstream.diagnostics.finding import Edit
from millstream.pipeline.sql import Mark, read
from millstream.spec.mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.dataflow import Column, PlannedQuery
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)
INSTEAD_OF = ("without watermark",)


def check(facts: Facts) -> Iterator[Finding]:
    """SQL views that end in a query in append or update mode; complete keeps every group by its meaning.

    In update mode only rows grouped by time: a total a key may be meant, and only a plan tells. What a Python view
    does to its rows is not known here, so nothing behind one is judged.
    """
    for query, view, source, mark in _told(facts):
        yield _finding(facts, query, view, source, mark)


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:
    """What `check` cannot read: Python views, scripts, repetitions dropped by key, groupings found only by Spark."""
    if query.output_mode is OutputMode.COMPLETE:
        return
    told = {(name, view) for name, view, _, _ in _told(facts)} if facts else set()
    for one in eventtime.keyed(query):
        if eventtime.watermarks(one) or (query.name, one.view) in told or not _unbounded(query, one):
            continue
        streams = [stream.source for stream in eventtime.streams(one) if stream.source]
        source = streams[0] if streams else "the stream"
        known = facts is not None and source in facts.pipeline.sources
        verb = "aggregates" if isinstance(one, Aggregate) else "drops repetitions of"
        yield CODE.error(
            f"{eventtime.who(query, one)} {verb} source '{source}', which has no watermark",
            eventtime.place(query, one),
            label="here",
            why=_WHY
            if isinstance(one, Aggregate)
            else "without a watermark Spark remembers every key for ever",
            fix=_fix(one, source),
            edit=_edit(facts, source, _time(one.keys)) if facts and known else None,
            query=query.name,
        )


_WHY = "without a watermark Spark keeps every group in the state store for ever"


def _unbounded(query: PlannedQuery, one: Aggregate | Deduplicate) -> bool:
    """Would a watermark be missed? A total a key is told by MS202; in append mode Spark refuses any grouping."""
    if isinstance(one, Aggregate):
        return eventtime.timed(one) or query.output_mode is OutputMode.APPEND
    if one.within_watermark:
        return True
    free = [key for key in one.keys if not eventtime.bounded(one, key)]
    return bool(free) and not eventtime.kept_by_sinks(query, one)


def _fix(one: Aggregate | Deduplicate, source: str) -> str:
    late = f"say how late a row of '{source}' may be"
    if isinstance(one, Aggregate) or one.within_watermark:
        return late
    return f"{late}, and drop repetitions within the watermark"


def _told(facts: Facts) -> Iterator[tuple[str, str, str, Mark]]:
    """Query, view, source and the name in the view's SQL, for each source without a watermark that is grouped."""
    pipeline = facts.pipeline
    for query, target in facts.graph.writes.items():
        mode = pipeline.queries[query].output_mode
        if mode is OutputMode.COMPLETE:
            continue
        for name in facts.graph.behind(target):
            sql = pipeline.views[name].sql if name in pipeline.views else None
            if sql is None:
                continue
            for source, mark in _unmarked(facts, name):
                times = None if mode is OutputMode.APPEND else frozenset(_times(facts, source))
                if mark.start in grouped(read(sql).tree, times):
                    yield query, name, source, mark


def _unmarked(facts: Facts, view: str) -> Iterator[tuple[str, Mark]]:
    """Streams without a watermark that a view reads, each with the name in its SQL that leads there."""
    pipeline = facts.pipeline
    known = {name.lower(): name for name in (*pipeline.sources, *pipeline.views)}
    told: set[str] = set()
    reading = read(pipeline.views[view].sql or "")
    for mark in () if reading.watermarked else reading.tables:
        waiting = [known.get(mark.text.lower(), "")]
        seen: set[str] = set()
        while waiting:
            name = waiting.pop(0)
            if name in seen:
                continue
            seen.add(name)
            if name in pipeline.sources:
                entry = pipeline.sources[name]
                if not entry.static and entry.watermark is None and name not in told:
                    told.add(name)
                    yield name, mark
            elif name in pipeline.views and (sql := pipeline.views[name].sql) and not read(sql).watermarked:
                waiting.extend(facts.graph.reads[name])


def _finding(facts: Facts, query: str, view: str, source: str, mark: Mark) -> Finding:
    direct = mark.text.lower() == source.lower()
    return CODE.error(
        f"view '{view}' aggregates source '{source}', which has no watermark",
        facts.places.sql(view, mark.start, mark.stop),
        label="reads it here" if direct else f"reads '{source}' through it",
        why=_WHY,
        fix=f"say how late a row of '{source}' may be",
        edit=_edit(facts, source),
        query=query,
    )


def _times(facts: Facts, source: str) -> list[str]:
    """The columns of a source that are a point of time, in lower case."""
    columns = facts.pipeline.sources[source].columns or {}
    return [name.lower() for name, kind in columns.items() if kind.lower().startswith("timestamp")]


def _time(keys: tuple[Column, ...]) -> str | None:
    """The source's column that the first key of time is made of."""
    origins = [origin for key in keys if eventtime.is_time(key) for origin in sorted(key.origins)]
    return origins[0][1] if origins else None


def _edit(facts: Facts, source: str, time: str | None = None) -> Edit | None:
    """The line to add under the source's key, when its settings stand on lines of their own.

    Not a safe one: how late a row may be is the user's to say.
    """
    key, first = facts.places.key("sources", source), facts.places.value("sources", source)
    if first.line <= key.line:
        return None
    columns = facts.pipeline.sources[source].columns or {}
    times = [name for name, kind in columns.items() if kind.lower().startswith("timestamp")]
    time = time or next(iter(times), "ts")
    indent = " " * (first.column - 1)
    line = f"{indent}watermark: {{event_time: {time}, delay_threshold: 10 minutes}}"
    return Edit(key.file, key.line, (line,), safe=False)
