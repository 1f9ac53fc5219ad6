"""What a rule is given, and how it says what it found."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypedDict, Unpack

from millstream.analysis.edits import instead
from millstream.diagnostics.finding import Edit, Finding, Severity, Span
from millstream.pipeline.graph import Graph

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.connectors.source import Problem
    from millstream.pipeline.model import Pipeline, SinkEntry
    from millstream.pipeline.places import Places


@dataclass(frozen=True)
class Facts:
    """A pipeline, its graph, and where everything stands."""

    pipeline: Pipeline
    places: Places

    @cached_property
    def graph(self) -> Graph:
        """Who reads whom."""
        return Graph.of(self.pipeline)

    def sinks(self) -> Iterator[tuple[str, int, SinkEntry]]:
        """Every sink with its query and its number in it."""
        for name, query in self.pipeline.queries.items():
            for number, entry in enumerate(query.to):
                yield name, number, entry

    def readers(self, source: str) -> list[str]:
        """The queries that read a source in the end, in the spec's order."""
        return [query for query in self.graph.writes if source in self.graph.upstream(query)]

    def setting(self, problem: Problem, *path: str | int) -> tuple[Span, Edit | None]:
        """Where a setting stands that a kind complains of, below `path`, and the edit that cures it."""
        field = problem.field.split(".") if problem.field else ()
        whole = (*path, *field, *(() if problem.key is None else (problem.key,)))
        if whole == path:
            return self.places.key(*path), None
        edit = instead(self.places, problem.instead, *whole) if problem.instead else None
        return self.places.value(*whole), edit

    def query_of(self, view: str) -> str | None:
        """The first query that a view or source ends in."""
        writes = self.graph.writes
        return next((query for query in writes if view in self.graph.behind(writes[query])), None)


class Details(TypedDict, total=False):
    """What a finding may say besides its message and place."""

    label: str
    why: str
    fix: str
    edit: Edit | None
    query: str | None


@dataclass(frozen=True)
class Code:
    """A rule's code and name, from the name of its module: `ms201_missing_watermark`."""

    code: str
    name: str

    @classmethod
    def of(cls, module: str) -> Code:
        """The code of a module `…ms201_missing_watermark`."""
        code, _, name = module.rpartition(".")[2].partition("_")
        return cls(code.upper(), name.replace("_", "-"))

    def error(self, message: str, span: Span | None, **more: Unpack[Details]) -> Finding:
        """A finding that refuses to start the pipeline."""
        return Finding(self.code, self.name, Severity.ERROR, message, span, **more)

    def warning(self, message: str, span: Span | None, **more: Unpack[Details]) -> Finding:
        """A finding that lets the pipeline start."""
        return Finding(self.code, self.name, Severity.WARNING, message, span, **more)

    def note(self, message: str, span: Span | None, **more: Unpack[Details]) -> Finding:
        """A finding that is good to know and blames nothing."""
        return Finding(self.code, self.name, Severity.INFO, message, span, **more)

    def of_problem(self, problem: Problem, span: Span, query: str | None = None) -> Finding:
        """What a kind says of its own settings."""
        return self.error(problem.message, span, why=problem.why, fix=problem.fix, query=query)
