"""Read the plans of a script's queries, with positions in the user's files."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from millstream.analysis.python.foreach_batch import read_function as batch_code
from millstream.analysis.query.plan_model import Operator, PlannedQuery, PlannedSink, Read
from millstream.checking.query_plan import SourceCall, SourcePlaces, SqlSpan, operators
from millstream.checking.query_plan.source_spans import parse
from millstream.checking.scripts.interception import call_sites
from millstream.checking.scripts.interception.spark_formats import sink_guarantee

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.checking.scripts.interception.recording import Recording, SourceRead, StartedQuery
    from millstream.diagnostics.finding import Span

_SECRET = re.compile(r"secret|passw|token|access[._-]?key|jaas|credential|private|sas|auth", re.IGNORECASE)


@dataclass(frozen=True)
class ScriptSpans(SourcePlaces):
    """Maps operators of a plan to positions in the script's files."""

    sources: Mapping[str, SourceRead] = field(default_factory=dict)
    texts: Mapping[str, call_sites.SqlText] = field(default_factory=dict)
    """The user's original SQL, by the SQL text that Spark received."""

    @classmethod
    def of(cls, recording: Recording, texts: Mapping[str, call_sites.SqlText]) -> ScriptSpans:
        """Return the positions for a recording."""
        # `formats` of the base class stays empty, because a view with a source's name would be taken for the source.
        return cls(sources=recording.sources, texts=texts)

    def sql(self, stretch: SqlSpan) -> Span | None:
        """Return the span of the SQL if the file contains it verbatim, else of the call that received it."""
        for text, original in self.texts.items():
            if stretch.of(text):
                return call_sites.span_within(original, stretch.start, stretch.stop)
        return None

    def call(self, call: SourceCall) -> Span | None:
        """Return the span of the method's name at its call."""
        return call_sites.method_span(call.file, call.line, call.method)

    def span_of_name(self, name: str) -> Span | None:
        """Return the span of the call that reads a source."""
        return self.sources[name].span if name in self.sources else None

    def span_of_node(self, node: Any) -> Span | None:
        """Return the span of the user's code for an operator of the JVM's plan."""
        origin = None if node is None else parse(str(node.origin().toString()))
        if origin is None:
            return None
        return self.sql(origin) if isinstance(origin, SqlSpan) else self.call(origin)


def plan_query(query: StartedQuery, places: ScriptSpans, conf: Mapping[str, str]) -> PlannedQuery:
    """Return a recorded query with the plan that Spark analysed for it."""
    root = _with_sources(operators(query.frame, places, query.mode), places.sources)  # type: ignore[arg-type]
    return _planned(query, root, conf)


def plan_unknown_query(query: StartedQuery, conf: Mapping[str, str]) -> PlannedQuery:
    """Return a query whose table is not known: its settings and its function, with a plan that says nothing."""
    return _planned(query, Operator(0, "Unknown", "", is_streaming=True), conf)


def _planned(query: StartedQuery, root: Operator, conf: Mapping[str, str]) -> PlannedQuery:
    function = None
    if query.function is not None:
        function = batch_code(query.function, call_sites.display_name)
        if function and query.options.get("persistDataFrame", "").lower() == "true":
            function = replace(function, is_persisted=True)
    sink = PlannedSink(
        name=f"{query.format} {query.target}".strip(),
        kind=query.format,
        routed_by=query.partitioned,
        span=query.span,
        options=_without_secrets({**({"path": query.target} if query.target else {}), **query.options}),
        function=function,
        guarantee=sink_guarantee(query.format)[0],
    )
    return PlannedQuery(
        name=query.name,
        root=root,
        output_mode=query.mode,
        trigger=query.trigger,
        sinks=(sink,),
        span=query.span,
        mode_span=query.mode_span,
        spark=conf,
    )


def streams_read(plan: PlannedQuery, sources: Mapping[str, SourceRead]) -> list[SourceRead]:
    """Return the streams that a query reads, without duplicates."""
    names = dict.fromkeys(read.source or "" for read in plan.of(Read))
    return [sources[name] for name in names if name in sources]


def _with_sources(operator: Operator, sources: Mapping[str, SourceRead]) -> Operator:
    """Return the same tree with each source's format and options from the script, without secrets."""
    inputs = tuple(_with_sources(child, sources) for child in operator.inputs)
    if isinstance(operator, Read) and operator.source and operator.source in sources:
        read = sources[operator.source]
        return replace(operator, inputs=inputs, format=read.format, options=_without_secrets(read.options))
    return replace(operator, inputs=inputs)


def _without_secrets(options: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in options.items() if not _SECRET.search(key)}
