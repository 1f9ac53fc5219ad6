"""Settings of a sink that work and take away from what it keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.facts import Code, Facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def check(facts: Facts) -> Iterator[Finding]:
    """Asks each sink about itself in the query's mode. Nothing is connected to."""
    for query, number, entry in facts.sinks():
        for problem in entry.sink.cautions(facts.pipeline.queries[query].output_mode):
            span, edit = facts.setting(problem, "queries", query, "to", number, "sink")
            yield CODE.warning(
                problem.message, span, why=problem.why, fix=problem.fix, edit=edit, query=query
            )
