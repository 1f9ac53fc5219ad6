"""Who reads whom in a pipeline: sources, views, queries and sinks, in the order they are made."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from millstream.pipeline.functions import functions
from millstream.pipeline.sql import Mark, read

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from millstream.pipeline.model import Pipeline, View


@dataclass(frozen=True)
class Graph:
    """The graph of a pipeline, as its SQL and the parameters of its Python functions say.

    A query may be called as a view or a source is; `writes` tells which of them it writes.
    """

    pipeline: Pipeline
    reads: dict[str, tuple[str, ...]]
    """For each view the sources and views it reads, each once, in the order they stand."""
    writes: dict[str, str]
    """For each query the view or source it writes; queries that name neither are left out."""
    unknown: dict[str, tuple[Mark, ...]]
    """For each view the names it reads that are neither source nor view."""
    order: list[str] = field(default_factory=list)
    """Views such that each comes after those it reads. Views in a cycle, or behind one, are left out."""
    cycles: list[tuple[str, ...]] = field(default_factory=list)
    """Views that read each other, each cycle once."""

    @classmethod
    def of(cls, pipeline: Pipeline) -> Graph:
        """The graph of a pipeline. Runs none of the user's code and never raises."""
        # Spark compares the names of views without case.
        known = {name.lower(): name for name in (*pipeline.sources, *pipeline.views)}
        reads: dict[str, tuple[str, ...]] = {}
        unknown: dict[str, tuple[Mark, ...]] = {}
        for name, view in pipeline.views.items():
            marks = tuple(reads_of(pipeline, view))
            found = [known[mark.text.lower()] for mark in marks if mark.text.lower() in known]
            reads[name] = tuple(dict.fromkeys(found))
            if lost := tuple(mark for mark in marks if mark.text.lower() not in known):
                unknown[name] = lost
        wanted = {query: pipeline.reads(query).lower() for query in pipeline.queries}
        writes = {query: known[name] for query, name in wanted.items() if name in known}
        order, cycles = _sort(reads)
        return cls(pipeline, reads, writes, unknown, order, cycles)

    def upstream(self, name: str) -> list[str]:
        """The sources that a query reads in the end, or a view, or the source itself; in the spec's order."""
        behind = set(self.behind(self.writes.get(name, "") if name in self.pipeline.queries else name))
        return [source for source in self.pipeline.sources if source in behind]

    def views(self, query: str) -> list[str]:
        """The views that a query needs, in the order they are made."""
        behind = set(self.behind(self.writes.get(query, "")))
        return [view for view in self.order if view in behind]

    def behind(self, name: str) -> Iterator[str]:
        """A view or source and all that it reads, each once."""
        waiting, seen = [name] if name else [], set()
        while waiting:
            here = waiting.pop(0)
            if here not in seen:
                seen.add(here)
                yield here
                waiting.extend(self.reads.get(here, ()))

    def used(self) -> set[str]:
        """Sources and views that end in a query."""
        return {name for query in self.writes for name in self.behind(self.writes[query])}


def reads_of(pipeline: Pipeline, view: View) -> Iterable[Mark]:
    """The names a view reads, with their place in its SQL; names from a Python function stand at 0."""
    if view.sql is not None:
        return read(view.sql).tables
    if view.stateful:
        return [Mark(name, 0, 0) for name, _ in view.inputs]
    if callable(view.python):
        return [Mark(name, 0, 0) for name in inspect.signature(view.python).parameters]
    module, _, name = (view.python or "").partition(":")
    file = pipeline.folder / (module.replace(".", "/") + ".py")
    try:
        function = functions(file.read_text(encoding="utf-8")).get(name)
    except (OSError, ValueError):
        # A file that is not there reads nothing; the rule about Python views says so.
        return []
    return [Mark(parameter, 0, 0) for parameter in function.parameters] if function else []


def _sort(reads: dict[str, tuple[str, ...]]) -> tuple[list[str], list[tuple[str, ...]]]:
    """Views in the order they can be made, and the cycles."""
    order: list[str] = []
    left = {name: [other for other in others if other in reads] for name, others in reads.items()}
    while ready := [name for name, others in left.items() if all(other in order for other in others)]:
        order += ready
        for name in ready:
            del left[name]
    cycles: list[tuple[str, ...]] = []
    for start in left:
        walk = [start]
        while True:
            following = next((other for other in left[walk[-1]] if other in left), None)
            if following is None:
                break
            if following in walk:
                cycle = walk[walk.index(following) :]
                if not any(set(cycle) == set(known) for known in cycles):
                    cycles.append(tuple(cycle))
                break
            walk.append(following)
    return order, cycles
