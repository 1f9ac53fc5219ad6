"""A sink cannot store the type of a column."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.rule_context import Code, Facts
from millstream.connectors.registry import sinks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.query.plan_model import PlannedQuery
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:
    """Ask each sink whether it can store the column types of its query's plan."""
    types = {column.name: column.type for column in query.root.columns}
    if facts is None:
        yield from _check_script_sinks(query, types)
        return
    for number, entry in enumerate(facts.pipeline.queries[query.name].to):
        stored_columns = entry.sink.takes(list(types))
        for problem in entry.sink.refuses({name: types[name] for name in stored_columns}):
            path = ("queries", query.name, "to", number, "sink")
            span, edit = facts.setting(problem, *path)
            yield CODE.error(
                problem.message, span, why=problem.why, fix=problem.fix, edit=edit, query=query.name
            )


def _check_script_sinks(query: PlannedQuery, types: dict[str, str]) -> Iterator[Finding]:
    """Check the sinks of a script, which are Spark's own and known by their format."""
    for sink in query.sinks:
        kind = sinks().get(sink.kind.lower())
        for problem in kind.of_spark(types, sink.options, sink.routed_by) if kind else ():
            yield CODE.error(
                problem.message,
                sink.span or query.span,
                why=problem.why or "Spark checks this only when it writes the first batch",
                fix=problem.fix,
                query=query.name,
            )
