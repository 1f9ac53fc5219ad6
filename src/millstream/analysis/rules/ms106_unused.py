"""A source or view that ends in no query."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.facts import Code, Facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def check(facts: Facts) -> Iterator[Finding]:
    """Silent when a query's own reading is unknown: what is unused cannot be told then."""
    graph, pipeline = facts.graph, facts.pipeline
    if facts.places.unread or graph.unknown or graph.cycles or len(graph.writes) < len(pipeline.queries):
        return
    used = graph.used()
    for section, names in (("sources", pipeline.sources), ("views", pipeline.views)):
        for name in names:
            if name not in used:
                yield CODE.warning(
                    f"{section.removesuffix('s')} '{name}' ends in no query",
                    facts.places.key(section, name),
                    why="nothing of it is ever run or written",
                    fix="read it in a query, or remove it",
                )
