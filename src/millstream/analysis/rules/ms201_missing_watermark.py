"""A streaming aggregation or deduplication reads a source that has no watermark."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from millstream.analysis.query import event_time
from millstream.analysis.query.plan_model import Aggregate, Deduplicate
from millstream.analysis.query.sql_grouping import find_grouped_tables
from millstream.analysis.rule_context import Code, Facts
from millstream.diagnostics.finding import Edit
from millstream.pipeline.sql.references import TextMark, parse_sql
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from millstream.analysis.query.plan_model import Column, PlannedQuery
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)
_WINDOW = re.compile(r"\b(?:session_)?window\s*\(\s*(?:\w+\.)?([A-Za-z_]\w*)", re.IGNORECASE)
INSTEAD_OF = ("without watermark",)


def check(facts: Facts) -> Iterator[Finding]:
    """Check SQL views that feed a query in append or update mode. Complete mode keeps every group by definition.

    In update mode, check only groups by time: a total per key may be intended, and only a plan shows that. Views
    that read a Python view are not checked here, because the columns it returns are unknown.
    """
    for query, view, source, mark in _find_unbounded(facts):
        yield _build_finding(facts, query, view, source, mark)


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:
    """Check what only a plan shows: Python views, scripts, deduplication, and groups that only Spark finds."""
    if query.output_mode is OutputMode.COMPLETE:
        return
    reported = {(name, view) for name, view, _, _ in _find_unbounded(facts)} if facts else set()
    for operator in event_time.list_keyed_operators(query):
        if (
            event_time.list_watermarks(operator)
            or (query.name, operator.view) in reported
            or not _grows_without_watermark(query, operator)
        ):
            continue
        streams = [stream.source for stream in event_time.list_streams(operator) if stream.source]
        origin = _find_time_origin(operator.keys, streams)
        source = origin[0] if origin else streams[0] if streams else "the stream"
        is_source = facts is not None and source in facts.pipeline.sources
        verb = "aggregates" if isinstance(operator, Aggregate) else "deduplicates"
        yield CODE.error(
            f"{event_time.owner_label(query, operator)} {verb} source '{source}', which has no watermark",
            event_time.find_span(query, operator),
            label="here",
            why=_REASON
            if isinstance(operator, Aggregate)
            else "without a watermark Spark keeps every key in the state store forever",
            fix=_suggest_fix(operator, source),
            edit=_build_edit(facts, source, operator.view or "", origin[1] if origin else None)
            if facts and is_source
            else None,
            query=query.name,
        )


_REASON = "without a watermark Spark keeps every group in the state store forever"


def _grows_without_watermark(query: PlannedQuery, operator: Aggregate | Deduplicate) -> bool:
    """Return whether the state needs a watermark.

    MS202 reports totals per key; in append mode every group needs one.
    """
    if isinstance(operator, Aggregate):
        return event_time.has_time_key(operator) or query.output_mode is OutputMode.APPEND
    if operator.is_within_watermark:
        return True
    unbounded_keys = [key for key in operator.keys if not event_time.is_bounded(operator, key)]
    return bool(unbounded_keys) and not event_time.is_keyed_by_sinks(query, operator)


def _suggest_fix(operator: Aggregate | Deduplicate, source: str) -> str:
    delay_fix = f"declare a watermark that says how late a row of '{source}' may be"
    if isinstance(operator, Aggregate) or operator.is_within_watermark:
        return delay_fix
    return f"{delay_fix}, and deduplicate within the watermark"


def _find_unbounded(facts: Facts) -> Iterator[tuple[str, str, str, TextMark]]:
    """Yield query, view, source and its place in the SQL for each aggregated source without a watermark."""
    pipeline = facts.pipeline
    for query, target in facts.graph.writes.items():
        mode = pipeline.queries[query].output_mode
        if mode is OutputMode.COMPLETE:
            continue
        for name in facts.graph.behind(target):
            sql = pipeline.views[name].sql if name in pipeline.views else None
            if sql is None:
                continue
            for source, mark in _list_streams_without_watermark(facts, name):
                time_columns = (
                    None if mode is OutputMode.APPEND else frozenset(_list_time_columns(facts, source))
                )
                if mark.start in find_grouped_tables(parse_sql(sql).tree, time_columns):
                    yield query, name, source, mark


def _list_streams_without_watermark(facts: Facts, view: str) -> Iterator[tuple[str, TextMark]]:
    """Yield the streams without a watermark that a view reads, each with the name in its SQL that leads to it."""
    pipeline = facts.pipeline
    known = {name.lower(): name for name in (*pipeline.sources, *pipeline.views)}
    reported: set[str] = set()
    reading = parse_sql(pipeline.views[view].sql or "")
    for mark in () if reading.has_watermark else reading.tables:
        pending = [known.get(mark.text.lower(), "")]
        visited: set[str] = set()
        while pending:
            name = pending.pop(0)
            if name in visited:
                continue
            visited.add(name)
            if name in pipeline.sources:
                entry = pipeline.sources[name]
                if not entry.static and entry.watermark is None and name not in reported:
                    reported.add(name)
                    yield name, mark
            elif (
                name in pipeline.views
                and (sql := pipeline.views[name].sql)
                and not parse_sql(sql).has_watermark
            ):
                pending.extend(facts.graph.reads[name])


def _build_finding(facts: Facts, query: str, view: str, source: str, mark: TextMark) -> Finding:
    is_direct = mark.text.lower() == source.lower()
    return CODE.error(
        f"view '{view}' aggregates source '{source}', which has no watermark",
        facts.places.sql(view, mark.start, mark.stop),
        label="reads it here" if is_direct else f"reads '{source}' through it",
        why=_REASON,
        fix=f"declare a watermark that says how late a row of '{source}' may be",
        edit=_build_edit(facts, source, view),
        query=query,
    )


def _list_time_columns(facts: Facts, source: str) -> list[str]:
    """Return the timestamp columns of a source, in lower case."""
    return [name.lower() for name in _declared_times(facts, source)]


def _declared_times(facts: Facts, source: str) -> list[str]:
    """Return the timestamp columns of a source: declared, or fixed by its kind."""
    entry = facts.pipeline.sources[source]
    if entry.columns is not None:
        columns = entry.columns
    elif entry.source.columns is not None:
        columns = dict(column.split(" ", 1) for column in entry.source.columns.split(", "))
    else:
        # The columns of an undecoded message.
        columns = {"timestamp": "timestamp"} if entry.source.has_payload and entry.format is None else {}
    return [name for name, kind in columns.items() if kind.lower().startswith("timestamp")]


def _choose_time_column(facts: Facts, source: str, view: str) -> str | None:
    """Return the column for a watermark: the one that the view groups by, else the only known one, else None."""
    known = _declared_times(facts, source)
    sql = facts.pipeline.views[view].sql if view in facts.pipeline.views else None
    windows = [name for name in _WINDOW.findall(sql or "") if name in known or not known]
    return next(iter([*windows, *known]), None)


def _find_time_origin(keys: tuple[Column, ...], streams: Collection[str]) -> tuple[str, str] | None:
    """Return the stream, and its column, from which the first time key is computed."""
    origins = [origin for key in keys if event_time.is_time(key) for origin in sorted(key.origins)]
    return next((origin for origin in origins if origin[0] in streams), None)


def _build_edit(facts: Facts, source: str, view: str, time: str | None = None) -> Edit | None:
    """Return the line to add under the source's key, if its settings are on separate lines and its time is known.

    The edit is not safe: only the user knows how late a row may be.
    """
    key, first = facts.places.key("sources", source), facts.places.value("sources", source)
    if first.line <= key.line:
        return None
    time = time or _choose_time_column(facts, source, view)
    if time is None:
        return None
    indent = " " * (first.column - 1)
    line = f"{indent}watermark: {{event_time: {time}, delay_threshold: 10 minutes}}"
    return Edit(key.file, key.line, (line,), is_safe=False)
