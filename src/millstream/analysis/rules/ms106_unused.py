"""No query uses a source or view."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.rule_context import Code, Facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def check(facts: Facts) -> Iterator[Finding]:
    """Report nothing if the inputs of a view or query are unknown, because its sources may then be in use."""
    graph, pipeline = facts.graph, facts.pipeline
    if facts.places.unread or graph.unknown or graph.cycles or len(graph.writes) < len(pipeline.queries):
        return
    used = graph.used()
    for section, names in (("sources", pipeline.sources), ("views", pipeline.views)):
        for name in names:
            if name not in used:
                yield CODE.warning(
                    f"{section.removesuffix('s')} '{name}' is used by no query",
                    facts.places.key(section, name),
                    why="no query reads it, so it has no effect",
                    fix="use it in a query, or remove it",
                )
