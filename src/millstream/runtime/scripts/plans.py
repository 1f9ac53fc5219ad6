"""The plans of a script's queries as values, with places in the user's own files."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from millstream.analysis.batch_code import of as batch_code
from millstream.analysis.dataflow import Operator, PlannedQuery, PlannedSink, Read
from millstream.runtime.planning import Call, Stretch, Where, operators
from millstream.runtime.planning.places import parse
from millstream.runtime.scripts import calls

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.diagnostics.finding import Span
    from millstream.runtime.scripts.record import Recording, SourceRead, Started

_SECRET = re.compile(r"secret|passw|token|access[._-]?key|jaas|credential|private|sas|auth", re.IGNORECASE)


@dataclass(frozen=True)
class Places(Where):
    """Places of a plan in the files that made it."""

    sources: Mapping[str, SourceRead] = field(default_factory=dict)
    texts: Mapping[str, calls.Given] = field(default_factory=dict)
    """What the user gave to Spark, by the SQL text that Spark was shown."""

    @classmethod
    def of(cls, recording: Recording, texts: Mapping[str, calls.Given]) -> Places:
        """The places of what was recorded."""
        # Not the base's own `formats`: a view of that name would pass for the source itself.
        return cls(sources=recording.sources, texts=texts)

    def sql(self, stretch: Stretch) -> Span | None:
        """In the text where the file holds it as it is, else the call that was given it."""
        for text, given in self.texts.items():
            if stretch.of(text):
                return calls.within(given, stretch.start, stretch.stop)
        return None

    def call(self, call: Call) -> Span | None:
        """The method's name where it is called."""
        return calls.method_span(call.file, call.line, call.method)

    def named(self, name: str) -> Span | None:
        """The call that reads a source."""
        return self.sources[name].span if name in self.sources else None

    def of_node(self, node: Any) -> Span | None:
        """Where the user wrote an operator of the JVM's plan."""
        origin = None if node is None else parse(str(node.origin().toString()))
        if origin is None:
            return None
        return self.sql(origin) if isinstance(origin, Stretch) else self.call(origin)


def planned(query: Started, places: Places, conf: Mapping[str, str]) -> PlannedQuery:
    """A recorded query with the plan that Spark analysed for it."""
    root = _as_read(operators(query.frame, places, query.mode), places.sources)  # type: ignore[arg-type]
    function = None
    if query.function is not None:
        function = batch_code(query.function, calls.named)
    sink = PlannedSink(
        name=f"{query.format} {query.target}".strip(),
        kind=query.format,
        routed_by=query.partitioned,
        span=query.span,
        options=_open({**({"path": query.target} if query.target else {}), **query.options}),
        function=function,
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


def streams(plan: PlannedQuery, sources: Mapping[str, SourceRead]) -> list[SourceRead]:
    """The streams that a query reads, each once."""
    names = dict.fromkeys(read.source or "" for read in plan.of(Read))
    return [sources[name] for name in names if name in sources]


def _as_read(operator: Operator, sources: Mapping[str, SourceRead]) -> Operator:
    """The same tree with each source's format and options as the script gave them, without secrets."""
    inputs = tuple(_as_read(one, sources) for one in operator.inputs)
    if isinstance(operator, Read) and operator.source and operator.source in sources:
        read = sources[operator.source]
        return replace(operator, inputs=inputs, format=read.format, options=_open(read.options))
    return replace(operator, inputs=inputs)


def _open(options: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in options.items() if not _SECRET.search(key)}
