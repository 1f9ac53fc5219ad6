"""Build the graph of a pipeline: which sources and views each view and query reads, and in which order."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from millstream.pipeline.functions import list_functions
from millstream.pipeline.sql.references import TextMark, parse_sql

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from millstream.pipeline.model import Pipeline, View


@dataclass(frozen=True)
class PipelineGraph:
    """The graph of a pipeline, derived from its SQL and the parameters of its Python functions.

    A query may have the same name as a view or source; `writes` contains the one that it writes.
    """

    pipeline: Pipeline
    reads: dict[str, tuple[str, ...]]
    """For each view the sources and views it reads, each once, in the order of their appearance."""
    writes: dict[str, str]
    """For each query the view or source it writes. Queries that name neither are missing."""
    unknown: dict[str, tuple[TextMark, ...]]
    """For each view the names it reads that are neither a source nor a view."""
    order: list[str] = field(default_factory=list)
    """Views in topological order: each comes after those it reads. Views in or after a cycle are missing."""
    cycles: list[tuple[str, ...]] = field(default_factory=list)
    """Cycles of views that read each other, each cycle once."""

    @classmethod
    def of(cls, pipeline: Pipeline) -> PipelineGraph:
        """Build the graph of a pipeline. Runs none of the user's code and never raises."""
        # Spark compares the names of views without case.
        known = {name.lower(): name for name in (*pipeline.sources, *pipeline.views)}
        reads: dict[str, tuple[str, ...]] = {}
        unknown: dict[str, tuple[TextMark, ...]] = {}
        for name, view in pipeline.views.items():
            references = tuple(find_view_inputs(pipeline, view))
            inputs = [known[mark.text.lower()] for mark in references if mark.text.lower() in known]
            reads[name] = tuple(dict.fromkeys(inputs))
            if unresolved := tuple(mark for mark in references if mark.text.lower() not in known):
                unknown[name] = unresolved
        targets = {query: pipeline.reads(query).lower() for query in pipeline.queries}
        writes = {query: known[name] for query, name in targets.items() if name in known}
        order, cycles = _sort(reads)
        return cls(pipeline, reads, writes, unknown, order, cycles)

    def sources_of(self, name: str) -> list[str]:
        """Return the sources that a query, view or source depends on, in the spec's order."""
        dependencies = set(self.behind(self.writes.get(name, "") if name in self.pipeline.queries else name))
        return [source for source in self.pipeline.sources if source in dependencies]

    def views(self, query: str) -> list[str]:
        """Return the views that a query needs, in topological order."""
        dependencies = set(self.behind(self.writes.get(query, "")))
        return [view for view in self.order if view in dependencies]

    def behind(self, name: str) -> Iterator[str]:
        """Yield a view or source and everything it reads, directly or not, each once."""
        queue, visited = [name] if name else [], set()
        while queue:
            current = queue.pop(0)
            if current not in visited:
                visited.add(current)
                yield current
                queue.extend(self.reads.get(current, ()))

    def used(self) -> set[str]:
        """Return the sources and views that some query reads, directly or not."""
        return {name for query in self.writes for name in self.behind(self.writes[query])}


def find_view_inputs(pipeline: Pipeline, view: View) -> Iterable[TextMark]:
    """Return the names a view reads, with their position in its SQL; it is 0 for a Python function's parameters."""
    if view.sql is not None:
        return parse_sql(view.sql).tables
    if view.is_stateful:
        return [TextMark(name, 0, 0) for name, _ in view.inputs]
    if callable(view.python):
        return [TextMark(name, 0, 0) for name in inspect.signature(view.python).parameters]
    module, _, name = (view.python or "").partition(":")
    file = pipeline.folder / (module.replace(".", "/") + ".py")
    try:
        function = list_functions(file.read_text(encoding="utf-8-sig")).get(name)
    except (OSError, ValueError):
        # A missing file reads nothing; the rule about Python views reports it.
        return []
    return [TextMark(parameter, 0, 0) for parameter in function.parameters] if function else []


def _sort(reads: dict[str, tuple[str, ...]]) -> tuple[list[str], list[tuple[str, ...]]]:
    """Return the views in topological order, and the cycles."""
    order: list[str] = []
    remaining = {name: [other for other in others if other in reads] for name, others in reads.items()}
    while ready := [name for name, others in remaining.items() if all(other in order for other in others)]:
        order += ready
        for name in ready:
            del remaining[name]
    cycles: list[tuple[str, ...]] = []
    for start in remaining:
        walk = [start]
        while True:
            following = next((other for other in remaining[walk[-1]] if other in remaining), None)
            if following is None:
                break
            if following in walk:
                cycle = walk[walk.index(following) :]
                if not any(set(cycle) == set(known) for known in cycles):
                    cycles.append(tuple(cycle))
                break
            walk.append(following)
    return order, cycles
