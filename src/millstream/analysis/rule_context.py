"""The input of a rule, and the functions by which it builds findings."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypedDict, Unpack

from millstream.analysis.text_edits import replace_value
from millstream.diagnostics.finding import Edit, Finding, Severity, Span
from millstream.pipeline.graph import PipelineGraph

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.connectors.api.values.problem import Problem
    from millstream.pipeline.load.places import ValuePositions
    from millstream.pipeline.model import Pipeline, SinkEntry


@dataclass(frozen=True)
class Facts:
    """A pipeline, its graph, and the positions of its settings in the file."""

    pipeline: Pipeline
    places: ValuePositions

    @cached_property
    def graph(self) -> PipelineGraph:
        """Build the graph of sources, views and queries once."""
        return PipelineGraph.of(self.pipeline)

    def sinks(self) -> Iterator[tuple[str, int, SinkEntry]]:
        """Yield every sink with its query and its index in the query, from 0."""
        for name, query in self.pipeline.queries.items():
            for number, entry in enumerate(query.to):
                yield name, number, entry

    def key_setting(self, query: str, number: int) -> str:
        """Return the setting that names the key columns of a query's sink."""
        sink = self.pipeline.queries[query].to[number].sink
        return "key" if "key" in type(sink).model_fields else "merge_on"

    def readers(self, source: str) -> list[str]:
        """List the queries that read a source, directly or through views, in the spec's order."""
        return [query for query in self.graph.writes if source in self.graph.sources_of(query)]

    def setting(self, problem: Problem, *path: str | int) -> tuple[Span, Edit | None]:
        """Return the span of the setting that a connector refuses, below `path`, and the edit that fixes it."""
        field = problem.field.split(".") if problem.field else ()
        full_path = (*path, *field, *(() if problem.key is None else (problem.key,)))
        if full_path == path:
            return self.places.key(*path), None
        edit = replace_value(self.places, problem.instead, *full_path) if problem.instead else None
        return self.places.value(*full_path), edit

    def query_of(self, view: str) -> str | None:
        """Return the first query that reads a view or source."""
        writes = self.graph.writes
        return next((query for query in writes if view in self.graph.behind(writes[query])), None)


class FindingDetails(TypedDict, total=False):
    """Optional parts of a finding besides its message and span."""

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
        """Return the code of a module such as `…ms201_missing_watermark`."""
        code, _, name = module.rpartition(".")[2].partition("_")
        return cls(code.upper(), name.replace("_", "-"))

    def error(self, message: str, span: Span | None, **more: Unpack[FindingDetails]) -> Finding:
        """Build a finding that prevents the pipeline from starting."""
        return Finding(self.code, self.name, Severity.ERROR, message, span, **more)

    def warning(self, message: str, span: Span | None, **more: Unpack[FindingDetails]) -> Finding:
        """Build a finding that does not prevent the pipeline from starting."""
        return Finding(self.code, self.name, Severity.WARNING, message, span, **more)

    def note(self, message: str, span: Span | None, **more: Unpack[FindingDetails]) -> Finding:
        """Build a finding that is information only."""
        return Finding(self.code, self.name, Severity.INFO, message, span, **more)

    def of_problem(self, problem: Problem, span: Span, query: str | None = None) -> Finding:
        """Build an error from a problem that a connector reports about its settings."""
        return self.error(problem.message, span, why=problem.why, fix=problem.fix, query=query)
