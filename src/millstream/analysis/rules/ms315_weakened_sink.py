"""Settings of a sink are valid, but weaken its delivery guarantee."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.rule_context import Code, Facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def check(facts: Facts) -> Iterator[Finding]:
    """Ask each sink for warnings about its settings in the query's mode, without connecting to any system."""
    for query, number, entry in facts.sinks():
        for problem in entry.sink.weakening_problems(facts.pipeline.queries[query].output_mode):
            span, edit = facts.setting(problem, "queries", query, "to", number, "sink")
            yield CODE.warning(
                problem.message, span, why=problem.why, fix=problem.fix, edit=edit, query=query
            )
