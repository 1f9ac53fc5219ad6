"""Views that read each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.facts import Code, Facts
from millstream.pipeline.sql import read

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.diagnostics.finding import Finding, Span

CODE = Code.of(__name__)


def check(facts: Facts) -> Iterator[Finding]:
    """Each cycle once, at its first view in the spec."""
    for cycle in facts.graph.cycles:
        first = next(name for name in facts.pipeline.views if name in cycle)
        turn = cycle.index(first)
        around = (*cycle[turn:], *cycle[:turn], first)
        said = (
            f"view '{first}' reads itself"
            if len(cycle) == 1
            else f"views read each other: {' -> '.join(around)}"
        )
        yield CODE.error(
            said,
            _place(facts, first, around[1]),
            label="reads it here",
            why="a view can be made only after all that it reads",
            fix="take one of these readings out, or move what both need into a view of its own",
            query=facts.query_of(first),
        )


def _place(facts: Facts, view: str, name: str) -> Span:
    sql = facts.pipeline.views[view].sql
    for mark in read(sql).tables if sql is not None else ():
        if mark.text.lower() == name.lower():
            return facts.places.sql(view, mark.start, mark.stop)
    return facts.places.key("views", view)
