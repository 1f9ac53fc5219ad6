"""Find what a save changed: which views, and which tests depend on the change."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from millstream.pipeline.graph import PipelineGraph
from millstream.testing.harness.memory_streams import reduce_pipeline

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.checking.file_watch import Stamps
    from millstream.pipeline.model import Pipeline, View
    from millstream.testing.model import Case

_FUNCTIONS = {"python", "transform_with_state", "apply_in_pandas_with_state"}


def describe_python(stamps: Stamps) -> str:
    """Return a text that changes when a Python file of the project does."""
    return repr(sorted((str(file), stamp) for file, stamp in stamps.items() if file.suffix == ".py"))


def describe_entries(pipeline: Pipeline, python: str) -> dict[str, str]:
    """Return a text for each source and view that changes when its declaration does, by name.

    The text of a view with a Python function contains `python`, because the function may use any file.
    """
    sources = {name: repr(entry.model_dump()) for name, entry in pipeline.sources.items()}
    views = {name: _describe_view(view, python) for name, view in pipeline.views.items()}
    return {**sources, **views}


def find_changed_view(
    pipeline: Pipeline, before: Mapping[str, str], after: Mapping[str, str], shown: str | None
) -> str | None:
    """Return the view to show: the last one that changed, in the order of the graph, else the one shown before.

    If a source changed, that is the first view that reads it. At the start it is the view of the first query.
    """
    graph = PipelineGraph.of(pipeline)
    changed = {name for name, text in after.items() if before.get(name, "") != text}
    if before and changed:
        views = [name for name in graph.order if name in changed]
        readers = [name for name in graph.order if changed & {*graph.reads[name]}]
        return views[-1] if views else readers[0] if readers else next(iter(changed))
    if shown in after:
        return shown
    return next(iter(graph.writes.values()), None) or next(iter(reversed(graph.order)), None)


def describe_case(case: Case, python: str) -> str:
    """Return a hash of a test and of everything that its result depends on."""
    pipelines = [case.pipeline, *_later_pipelines(case)]
    parts = [
        repr((case.file, case.name, case.query, case.static, case.now, case.has_real_sinks, case.tolerance)),
        *(repr([type(action).__name__ for action in step.actions]) for step in case.steps),
        *(repr((getattr(action, "rows", None), getattr(action, "at", None), getattr(action, "by", None)))
          for step in case.steps for action in step.actions),
        *(repr(step.expected) for step in case.steps),
    ]  # fmt: skip
    for pipeline in pipelines:
        target = pipeline.reads(case.query) if case.query in pipeline.queries else ""
        reduced = reduce_pipeline(pipeline, target)
        parts += [repr((*sorted(describe_entries(reduced, python).items()), pipeline.spark, pipeline.params))]
        parts += [repr(query.model_dump()) for name, query in reduced.queries.items() if name == case.query]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _later_pipelines(case: Case) -> list[Pipeline]:
    """Return the pipelines with which the steps of a test restart the query."""
    actions = [action for step in case.steps for action in step.actions]
    return [pipeline for action in actions if (pipeline := getattr(action, "pipeline", None)) is not None]


def _describe_view(view: View, python: str) -> str:
    return repr(
        (
            view.model_dump(exclude=_FUNCTIONS),
            str(view.hook) if view.hook else "",
            python if view.hook else "",
        )
    )
