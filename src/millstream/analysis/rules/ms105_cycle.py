"""Views read each other in a circle."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.rule_context import Code, Facts
from millstream.pipeline.sql.references import parse_sql

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.diagnostics.finding import Finding, Span

CODE = Code.of(__name__)


def check(facts: Facts) -> Iterator[Finding]:
    """Report each cycle once, at its first view in the spec."""
    for cycle in facts.graph.cycles:
        first = next(name for name in facts.pipeline.views if name in cycle)
        start = cycle.index(first)
        path = (*cycle[start:], *cycle[:start], first)
        message = (
            f"view '{first}' reads itself"
            if len(cycle) == 1
            else f"views read each other: {' -> '.join(path)}"
        )
        yield CODE.error(
            message,
            _find_span(facts, first, path[1]),
            label="reads it here",
            why="a view can be created only after all sources and views that it reads",
            fix="remove one of these references, or move the shared part into a third view",
            query=facts.query_of(first),
        )


def _find_span(facts: Facts, view: str, name: str) -> Span:
    sql = facts.pipeline.views[view].sql
    for mark in parse_sql(sql).tables if sql is not None else ():
        if mark.text.lower() == name.lower():
            return facts.places.sql(view, mark.start, mark.stop)
    return facts.places.key("views", view)
