"""Settings of a source that cannot work, as its kind says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.facts import Code, Facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def check(facts: Facts) -> Iterator[Finding]:
    """Asks each source about itself. Nothing is connected to."""
    for name, entry in facts.pipeline.sources.items():
        for problem in entry.source.problems():
            path = ("sources", name, "source", *((problem.field,) if problem.field else ()))
            span = facts.places.value(*path) if problem.field else facts.places.key(*path)
            yield CODE.of_problem(problem, span)
