"""The connector of a source refuses its settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.rule_context import Code, Facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def check(facts: Facts) -> Iterator[Finding]:
    """Ask each source to validate its settings, without connecting to any system."""
    for name, entry in facts.pipeline.sources.items():
        for problem in entry.source.problems():
            path = ("sources", name, "source", *((problem.field,) if problem.field else ()))
            span = facts.places.value(*path) if problem.field else facts.places.key(*path)
            yield CODE.of_problem(problem, span)
